// Pages of runs, of one DAG or of all.
import { infiniteQueryOptions, keepPreviousData } from "@tanstack/react-query";

import type { Search } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { dagTopic } from "../../api/query";
import { dayStart, nextDay } from "./days";

export type Run = Schemas["RunView"];

export interface RunFiltersValue {
  states: readonly string[];
  types: readonly string[];
  dag: string;
  run: string;
  from: string | undefined;
  before: string | undefined;
  order: string;
}

const PAGE_SIZE = 100;
export const NEWEST_FIRST = "-run_after";

/** What the address says: `state`, `type`, `dag`, `run`, `from` and `to` (days of the shown zone), `day`, `order`. */
export function filtersOf(address: Search, zone: string): RunFiltersValue {
  const listed = (text: string | undefined): readonly string[] => (text ? text.split(",") : []);
  const from = address.day || address.from, to = address.day || address.to;
  return {
    states: listed(address.state),
    types: listed(address.type),
    dag: address.dag ?? "",
    run: address.run ?? "",
    from: from ? dayStart(from, zone) : undefined,
    before: to ? dayStart(nextDay(to), zone) : undefined,
    order: address.order || NEWEST_FIRST,
  };
}

export function isFiltered(filters: RunFiltersValue): boolean {
  return filters.states.length + filters.types.length > 0 || Boolean(filters.dag || filters.run || filters.from || filters.before);
}

export function runsQuery(dagId: string, filters: RunFiltersValue) {
  return infiniteQueryOptions({
    queryKey: ["runs", dagId, filters],
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET("/api/v2/dags/{dag_id}/dagRuns", {
          signal,
          params: {
            path: { dag_id: dagId },
            query: {
              limit: PAGE_SIZE,
              cursor: pageParam,
              order_by: [filters.order],
              ...(filters.states.length ? { state: [...filters.states] } : {}),
              ...(filters.types.length ? { run_type: [...filters.types] } : {}),
              ...(filters.dag ? { dag_id_pattern: filters.dag } : {}),
              ...(filters.run ? { run_id_pattern: filters.run } : {}),
              ...(filters.from ? { run_after_gte: filters.from } : {}),
              ...(filters.before ? { run_after_lt: filters.before } : {}),
            },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    meta: { topics: dagId === "~" ? ["triage"] : [dagTopic(dagId)] },
  });
}
