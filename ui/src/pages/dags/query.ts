// The pages of the list of DAGs, and the two changes that are shown before the server has answered.
import { infiniteQueryOptions, keepPreviousData, type InfiniteData } from "@tanstack/react-query";

import { api, read, type Schemas } from "../../api/client";
import { dagTopic, queries } from "../../api/query";

export interface DagFilters {
  search: string;
  tags: readonly string[];
  owner: string;
  state: string;
  paused: string;
  favourite: boolean;
  broken: boolean;
  order: string;
}

type Pages = InfiniteData<Schemas["PageDags"], string | null>;

const PAGE_SIZE = 100;

export function dagsQuery(filters: DagFilters) {
  const key = ["dags", filters] as const;
  const known = queries.getQueryData<Pages>(key);
  // A new run changes bars and counts; a change of a shown DAG may also be a pause.
  const topics = ["triage", ...(known?.pages.flatMap((page) => page.dags.map((dag) => dagTopic(dag.dag_id))) ?? [])];
  return infiniteQueryOptions({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET("/api/tradewind/v1/dags", {
          signal,
          params: {
            query: {
              limit: PAGE_SIZE,
              ...(filters.search ? { search: filters.search } : {}),
              ...(filters.tags.length ? { tag: [...filters.tags] } : {}),
              ...(filters.owner ? { owner: [filters.owner] } : {}),
              ...(filters.state ? { state: filters.state.split(",") } : {}),
              ...(filters.paused ? { paused: filters.paused === "1" } : {}),
              ...(filters.favourite ? { favourite: true } : {}),
              ...(filters.broken ? { import_error: true } : {}),
              ...(filters.order ? { order: filters.order } : {}),
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
    meta: { topics },
  });
}

/** Changes a DAG in all cached lists. Returns the former lists. */
function edit(dag: string, change: Partial<Schemas["PageDag"]>): [readonly unknown[], Pages | undefined][] {
  const before = queries.getQueriesData<Pages>({ queryKey: ["dags"] });
  queries.setQueriesData<Pages>({ queryKey: ["dags"] }, (old) =>
    old && { ...old, pages: old.pages.map((page) => ({ ...page, dags: page.dags.map((one) => (one.dag_id === dag ? { ...one, ...change } : one)) })) },
  );
  return before;
}

/** Shows the change at once and sends it. After an error, the change is undone and the error is thrown. */
async function optimistic(dag: string, change: Partial<Schemas["PageDag"]>, send: () => Promise<unknown>): Promise<void> {
  await queries.cancelQueries({ queryKey: ["dags"] });
  const before = edit(dag, change);
  try {
    await send();
  } catch (error) {
    for (const [key, data] of before) queries.setQueryData(key, data);
    throw error;
  }
  await queries.invalidateQueries({ queryKey: ["dags"] });
}

export function setPaused(dag: string, isPaused: boolean): Promise<void> {
  return optimistic(dag, { is_paused: isPaused }, () =>
    read(api.PATCH("/api/v2/dags/{dag_id}", { params: { path: { dag_id: dag } }, body: { is_paused: isPaused } })));
}

export function setFavourite(dag: string, isFavourite: boolean): Promise<void> {
  const params = { path: { dag_id: dag } };
  return optimistic(dag, { is_favourite: isFavourite }, () =>
    read(isFavourite ? api.POST("/api/v2/dags/{dag_id}/favorite", { params }) : api.POST("/api/v2/dags/{dag_id}/unfavorite", { params })));
}
