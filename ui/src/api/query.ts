// The cache of answers. A query names the topics that make it stale; the stream of changes refreshes exactly those that are shown.
import { QueryClient, queryOptions, type QueryKey } from "@tanstack/react-query";

import { ApiError, isMissing } from "./client";

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: {
      /** Names as the stream of changes sends them: `dag:<id>`, `run:<dag>/<run>`, `task:…`, `tasks:<dag>/<run>`, `pool:<name>`, `pools`, `triage`. */
      topics?: readonly string[];
    };
  }
}

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: 300_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 2 && error instanceof ApiError && error.passes,
      // A refresh never empties the page: the old data stay until the new data arrive.
      placeholderData: undefined,
    },
    mutations: { retry: false },
  },
});

/** A query that is read again when one of its topics changes. */
export function live<T>(key: QueryKey, topics: readonly string[], load: (signal: AbortSignal) => Promise<T>) {
  return queryOptions({ queryKey: key, queryFn: ({ signal }) => load(signal), meta: { topics } });
}

/** The main query of a page. If the DAG, run or task instance does not exist, the page `MissingPage` is shown. */
export function livePage<T>(key: QueryKey, topics: readonly string[], load: (signal: AbortSignal) => Promise<T>) {
  return queryOptions({ ...live(key, topics, load), throwOnError: isMissing });
}

/** A part of a topic's name: ids are percent-encoded. */
export const enc = encodeURIComponent;
export const dagTopic = (dag: string): string => `dag:${enc(dag)}`;
export const runTopic = (dag: string, run: string): string => `run:${enc(dag)}/${enc(run)}`;
/** Many task instances of a run, or those that somebody has marked or cleared. */
export const tasksTopic = (dag: string, run: string): string => `tasks:${enc(dag)}/${enc(run)}`;
export const taskTopic = (dag: string, run: string, task: string, map: number): string => `task:${enc(dag)}/${enc(run)}/${enc(task)}/${map}`;
