// The positions of boxes and edges. ELK computes them in a worker. This file has its input, its output, and the drawn paths. Pure.
import type { ElkExtendedEdge, ElkNode } from "elkjs/lib/elk-api";

import { textWidth, type GraphModel } from "./model";

export type Direction = "right" | "down";
export type Point = readonly [x: number, y: number];

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface DrawnEdge {
  id: string;
  points: Point[];
  label: (Box & { text: string }) | null;
}

export interface Layout {
  width: number;
  height: number;
  boxes: Map<number, Box>;
  edges: DrawnEdge[];
}

/** Of the graph and of each group in it. */
const EACH: Readonly<Record<string, string>> = {
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.layered.mergeEdges": "true",
  "elk.layered.spacing.nodeNodeBetweenLayers": "44",
  "elk.layered.spacing.edgeNodeBetweenLayers": "16",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "8",
  "elk.spacing.nodeNode": "16",
  "elk.spacing.edgeNode": "16",
  "elk.spacing.edgeEdge": "8",
};
const OPTIONS: Readonly<Record<string, string>> = {
  ...EACH,
  "elk.algorithm": "layered",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.spacing.componentComponent": "32",
  "elk.padding": "[top=24,left=24,bottom=24,right=24]",
  "elk.json.shapeCoords": "ROOT",
  "elk.json.edgeCoords": "ROOT",
};
const GROUP_PADDING = "[top=48,left=16,bottom=16,right=16]";
/** With more boxes an exact placement takes too long. */
const EXACT_MAX = 200;

export function elkGraph(model: GraphModel, direction: Direction): ElkNode {
  // Keeping the order of the tasks in their file works only without open groups: ELK fails in some graphs with them.
  const ordered = !model.nodes.some((one) => one.kind === "open");
  const placement = { "elk.layered.nodePlacement.strategy": model.nodes.length <= EXACT_MAX ? "NETWORK_SIMPLEX" : "BRANDES_KOEPF" };
  const root: ElkNode = {
    id: "root",
    layoutOptions: {
      ...OPTIONS,
      ...placement,
      ...(ordered ? { "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES" } : {}),
      "elk.direction": direction === "right" ? "RIGHT" : "DOWN",
    },
    children: [],
    edges: model.edges.map((one): ElkExtendedEdge => ({
      id: one.id, sources: [String(one.from)], targets: [String(one.to)],
      ...(one.label ? { labels: [{ text: one.label, width: Math.min(180, textWidth(one.label) * 0.86 + 12), height: 18, layoutOptions: { "elk.edgeLabels.inline": "true" } }] } : {}),
    })),
  };
  const nodes = new Map<number, ElkNode>();
  for (const one of model.nodes) {
    const open = one.kind === "open";
    const node: ElkNode = { id: String(one.row), width: one.width, height: one.height, ...(open ? { children: [], layoutOptions: { ...EACH, ...placement, "elk.padding": GROUP_PADDING, "elk.nodeSize.constraints": "MINIMUM_SIZE", "elk.nodeSize.minimum": `(${one.width}, 60)` } } : {}) };
    nodes.set(one.row, node);
    (nodes.get(one.parent) ?? root).children?.push(node);
  }
  return root;
}

/** The layout that ELK has found, with the model's edges. */
export function layoutOf(found: ElkNode): Layout {
  const boxes = new Map<number, Box>();
  const visit = (node: ElkNode): void => {
    for (const one of node.children ?? []) {
      boxes.set(Number(one.id), { x: one.x ?? 0, y: one.y ?? 0, width: one.width ?? 0, height: one.height ?? 0 });
      visit(one);
    }
  };
  visit(found);
  const edges = (found.edges ?? []).map((edge): DrawnEdge => {
    const section = edge.sections?.[0];
    const label = edge.labels?.[0];
    return {
      id: edge.id,
      points: section ? [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map((one): Point => [one.x, one.y]) : [],
      label: label?.text ? { text: label.text, x: label.x ?? 0, y: label.y ?? 0, width: label.width ?? 0, height: label.height ?? 0 } : null,
    };
  });
  return { width: found.width ?? 0, height: found.height ?? 0, boxes, edges };
}

/** An SVG path through points, with round corners. */
export function roundedPath(points: readonly Point[], radius = 8): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const text = [`M${round(first[0])} ${round(first[1])}`];
  let before = first;
  rest.forEach((point, at) => {
    const next = rest[at + 1];
    if (!next) {
      text.push(`L${round(point[0])} ${round(point[1])}`);
      return;
    }
    const into = distance(before, point), out = distance(point, next);
    const size = Math.min(radius, into / 2, out / 2);
    const start = toward(point, before, into ? size / into : 0), end = toward(point, next, out ? size / out : 0);
    text.push(`L${round(start[0])} ${round(start[1])}`, `Q${round(point[0])} ${round(point[1])} ${round(end[0])} ${round(end[1])}`);
    before = point;
  });
  return text.join("");
}

const round = (value: number): number => Math.round(value * 10) / 10;
const distance = (a: Point, b: Point): number => Math.hypot(a[0] - b[0], a[1] - b[1]);
const toward = (from: Point, to: Point, share: number): Point => [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];

/** A view of the graph: a point p of the graph is at x + p·zoom on the screen. */
export interface View {
  x: number;
  y: number;
  zoom: number;
}

export const ZOOM_MIN = 0.05, ZOOM_MAX = 2;

/** The whole graph in the middle of a window, not enlarged. */
export function fitView(layout: Pick<Layout, "width" | "height">, width: number, height: number): View {
  const zoom = Math.max(ZOOM_MIN, Math.min(1, width / Math.max(1, layout.width), height / Math.max(1, layout.height)));
  return { zoom, x: (width - layout.width * zoom) / 2, y: (height - layout.height * zoom) / 2 };
}

/** The same point of the graph stays below (x, y). */
export function zoomAt(view: View, zoom: number, x: number, y: number): View {
  const wanted = Math.max(ZOOM_MIN, Math.min(ZOOM_MAX, zoom));
  const share = wanted / view.zoom;
  return { zoom: wanted, x: x - (x - view.x) * share, y: y - (y - view.y) * share };
}

/** A box in the middle of a window, with the zoom kept. */
export function centred(view: View, box: Box, width: number, height: number): View {
  return { zoom: view.zoom, x: width / 2 - (box.x + box.width / 2) * view.zoom, y: height / 2 - (box.y + box.height / 2) * view.zoom };
}

/** How far a graph may be moved: a part of it stays in the window. */
export function heldView(view: View, layout: Pick<Layout, "width" | "height">, width: number, height: number): View {
  const rest = 80;
  return {
    zoom: view.zoom,
    x: Math.min(width - rest, Math.max(rest - layout.width * view.zoom, view.x)),
    y: Math.min(height - rest, Math.max(rest - layout.height * view.zoom, view.y)),
  };
}

/** The nearest box in a direction, by place; undefined: there is none. */
export function nearest(boxes: ReadonlyMap<number, Box>, from: number, key: "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown"): number | undefined {
  const start = boxes.get(from);
  if (!start) return undefined;
  let found: number | undefined, least = Infinity;
  for (const [row, box] of boxes) {
    if (row === from) continue;
    const dx = box.x + box.width / 2 - (start.x + start.width / 2), dy = box.y + box.height / 2 - (start.y + start.height / 2);
    const [along, across] = key === "ArrowLeft" ? [-dx, dy] : key === "ArrowRight" ? [dx, dy] : key === "ArrowUp" ? [-dy, dx] : [dy, dx];
    if (along < 4) continue;
    const cost = along + Math.abs(across) * 2;
    if (cost < least) [found, least] = [row, cost];
  }
  return found;
}
