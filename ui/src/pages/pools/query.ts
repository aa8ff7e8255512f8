import { api, read } from "../../api/client";
import { PAGE_SIZE } from "../../api/pages";
import { enc, live, queries } from "../../api/query";

/** One page of the list. */
export async function loadPools(signal: AbortSignal, offset: number, search: string) {
  const query = { limit: PAGE_SIZE, offset, ...(search ? { pool_name_pattern: search } : {}) };
  const found = await read(api.GET("/api/v2/pools", { signal, params: { query } }));
  return { rows: found.pools, total: found.total_entries };
}

export function poolQuery(name: string) {
  return live(["pool", name], [`pool:${enc(name)}`, "pools"], (signal) =>
    read(api.GET("/api/tradewind/v1/pools/{pool_name}", { signal, params: { path: { pool_name: name } } })));
}

export async function refreshPools(): Promise<void> {
  await Promise.all([queries.invalidateQueries({ queryKey: ["pools"] }), queries.invalidateQueries({ queryKey: ["pool"] })]);
}
