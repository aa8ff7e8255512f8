// A list that the server gives in pages. The first one is read at once, the others when the end comes into view.
import { keepPreviousData, useInfiniteQuery, type QueryKey } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

/** Maximum number of rows in one answer of the server. */
export const PAGE_SIZE = 100;

export interface Rows<T> {
  rows: readonly T[];
  /** Number of rows on all pages. */
  total: number;
}

export interface Pages<T> {
  /** All loaded rows; undefined before the first page is loaded. */
  data: readonly T[] | undefined;
  error: unknown;
  refetch: () => unknown;
  total: number;
  /** Whether there are rows that are not loaded yet. */
  hasMore: boolean;
  /** Reads the next page, unless it is being read. */
  loadMore: () => void;
}

/** For lists whose changes the stream does not name: they are read again while they are shown. */
export const UNNAMED_MS = 5_000;

/** The pages of a list. Rows that move between pages while they are read are shown once. `everyMs`: interval after which the list is read again. */
export function usePages<T>(
  key: QueryKey, topics: readonly string[], load: (signal: AbortSignal, offset: number) => Promise<Rows<T>>, rowKey: (row: T) => string, everyMs?: number,
): Pages<T> {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ signal, pageParam }) => load(signal, pageParam),
    initialPageParam: 0,
    getNextPageParam: (last: Rows<T>, pages: Rows<T>[]) => {
      const loaded = pages.reduce((sum, page) => sum + page.rows.length, 0);
      return last.rows.length > 0 && loaded < last.total ? loaded : undefined;
    },
    placeholderData: keepPreviousData,
    ...(everyMs ? { refetchInterval: everyMs } : {}),
    meta: { topics },
  });
  const { data, error, isError, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const rows = useMemo(() => data && [...new Map(data.pages.flatMap((page) => page.rows).map((one) => [rowKey(one), one])).values()], [data, rowKey]);
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage, isError]);
  return { data: rows, error, refetch, total: data?.pages.at(-1)?.total ?? 0, hasMore: hasNextPage, loadMore };
}
