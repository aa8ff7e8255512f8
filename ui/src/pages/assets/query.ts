import { api, read } from "../../api/client";
import { PAGE_SIZE } from "../../api/pages";
import { live, queries } from "../../api/query";

/** Number of events of an asset that the server sends. */
export const EVENTS_SHOWN = 100;

/** One page of the list. */
export async function loadAssets(signal: AbortSignal, offset: number, search: string) {
  const query = { limit: PAGE_SIZE, offset, order_by: ["name"], ...(search ? { name_pattern: search } : {}) };
  const found = await read(api.GET("/api/v2/assets", { signal, params: { query } }));
  return { rows: found.assets, total: found.total_entries };
}

/** An asset, its latest events, and those that DAGs have not consumed yet. */
export function assetUseQuery(id: number) {
  return live(["asset-use", id], ["triage"], (signal) => read(api.GET("/api/tradewind/v1/assets/{asset_id}", { signal, params: { path: { asset_id: id } } })));
}

export const assetGraphQuery = live(["asset-graph"], ["triage"], (signal) => read(api.GET("/api/tradewind/v1/assets/graph", { signal })));

export async function refreshAssets(): Promise<void> {
  await Promise.all(["assets", "asset-use", "asset-graph"].map((one) => queries.invalidateQueries({ queryKey: [one] })));
}
