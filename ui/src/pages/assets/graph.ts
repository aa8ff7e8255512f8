// The graph of assets and DAGs: a DAG produces assets, and an asset starts DAGs. Pure.
import type { Schemas } from "../../api/client";
import type { GraphEdge, GraphModel, GraphNode } from "../graph/model";
import { textWidth } from "../graph/model";

export type AssetLinks = Schemas["AssetLinks"];

export interface AssetNode {
  kind: "dag" | "asset";
  /** The DAG id, or the name of the asset. */
  name: string;
  asset: AssetLinks | null;
  /** `dag:<id>` or `asset:<number>`. */
  key: string;
}

export interface AssetDrawing {
  /** By row of the model. */
  nodes: readonly AssetNode[];
  model: GraphModel;
}

const HEIGHT = 40;
const NARROWEST = 136;
const WIDEST = 300;
/** Icon, padding and border beside the name. */
const BESIDE = 54;
/** Names are written somewhat bolder than what `textWidth` measures. */
const BOLD = 1.12;

export const dagKey = (id: string): string => `dag:${id}`;
export const assetKey = (id: number): string => `asset:${id}`;

/** Pairs of keys: from, to. */
function edgesOf(assets: readonly AssetLinks[]): [string, string][] {
  return assets.flatMap((one) => [
    ...one.producers.map((dag): [string, string] => [dagKey(dag), assetKey(one.id)]),
    ...one.consumers.map((dag): [string, string] => [assetKey(one.id), dagKey(dag)]),
  ]);
}

/** A node with all nodes before and after it. */
function around(start: string, edges: readonly [string, string][]): Set<string> {
  const found = new Set([start]);
  for (const [from, to] of [[0, 1], [1, 0]] as const) {
    const next = new Map<string, string[]>();
    for (const edge of edges) next.set(edge[from], [...(next.get(edge[from]) ?? []), edge[to]]);
    const seen = new Set([start]), open = [start];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      for (const other of next.get(one) ?? []) {
        if (seen.has(other)) continue;
        seen.add(other);
        open.push(other);
      }
    }
    seen.forEach((one) => found.add(one));
  }
  return found;
}

/** The boxes and edges to draw. `focus`: only this node, and the nodes before and after it. */
export function assetDrawing(assets: readonly AssetLinks[], focus = ""): AssetDrawing {
  const all = edgesOf(assets);
  const kept = focus ? around(focus, all) : undefined;
  const nodes = new Map<string, AssetNode>();
  for (const one of assets) nodes.set(assetKey(one.id), { kind: "asset", name: one.name, asset: one, key: assetKey(one.id) });
  for (const one of assets) for (const dag of [...one.producers, ...one.consumers]) nodes.set(dagKey(dag), { kind: "dag", name: dag, asset: null, key: dagKey(dag) });
  const shown = [...nodes.values()].filter((one) => !kept || kept.has(one.key));
  const rows = new Map(shown.map((one, row) => [one.key, row]));
  const edges = all.flatMap(([from, to], at): GraphEdge[] => {
    const first = rows.get(from), second = rows.get(to);
    return first === undefined || second === undefined ? [] : [{ id: `e${at}`, from: first, to: second, count: 1, label: "", cleanup: false }];
  });
  const boxes = shown.map((one, row): GraphNode => ({ row, parent: -1, kind: "task", width: Math.max(NARROWEST, Math.min(WIDEST, Math.ceil(textWidth(one.name) * BOLD) + BESIDE)), height: HEIGHT }));
  return { nodes: shown, model: { nodes: boxes, edges } };
}
