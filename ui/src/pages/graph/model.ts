// What a graph shows: the tasks and groups of a structure that are not inside a closed group, and the edges between them. Pure.
import type { Schemas } from "../../api/client";

export type Structure = Schemas["Structure"];

/** Above this number of tasks a graph opens with closed groups. */
export const CLOSED_ABOVE = 300;
/** A graph with more boxes is not drawn: its layout would take minutes. */
export const DRAWN_MAX = 2_000;

export interface GraphNode {
  row: number;
  /** Row of the open group around it; -1: none. */
  parent: number;
  kind: "task" | "closed" | "open";
  width: number;
  height: number;
}

export interface GraphEdge {
  id: string;
  from: number;
  to: number;
  /** Number of edges between tasks that this edge represents. */
  count: number;
  label: string;
  /** From a setup task to its teardown task. */
  cleanup: boolean;
}

export interface GraphModel {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export function isGroup(structure: Structure, row: number): boolean {
  return structure.kinds[row] === 1 || structure.kinds[row] === 3;
}

export function isMapped(structure: Structure, row: number): boolean {
  return (structure.kinds[row] ?? 0) >= 2;
}

/** The name of a row: the author's label, else its id without that of its group. */
export function nameOf(structure: Structure, row: number): string {
  const label = structure.labels[String(row)];
  if (label) return label;
  const id = structure.ids[row] ?? "";
  const group = structure.parents[row] ?? -1;
  const prefix = group < 0 ? "" : `${structure.ids[group] ?? ""}.`;
  return prefix && id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

/** How many tasks a group has. */
export function tasksIn(structure: Structure, group: number): number {
  let found = 0;
  for (let row = group + 1; row < (structure.ends[group] ?? 0); row += 1) if (!isGroup(structure, row)) found += 1;
  return found;
}

/** The rows of groups that are closed. `toggled`: ids of groups that are not as the graph opens; `base`: how it opens. */
export function closedGroups(structure: Structure, base: string, toggled: readonly string[]): Set<number> {
  const closedFirst = base === "closed" || (base !== "open" && structure.task_count > CLOSED_ABOVE);
  const changed = new Set(toggled);
  const found = new Set<number>();
  for (let row = 0; row < structure.ids.length; row += 1) {
    if (isGroup(structure, row) && closedFirst !== changed.has(structure.ids[row] ?? "")) found.add(row);
  }
  return found;
}

/** For each row the row that stands for it: itself, or the outermost closed group around it. */
export function representatives(structure: Structure, closed: ReadonlySet<number>): Int32Array {
  const found = new Int32Array(structure.ids.length);
  for (let row = 0; row < found.length; row += 1) {
    const parent = structure.parents[row] ?? -1;
    if (parent < 0) found[row] = row;
    else if (found[parent] !== parent) found[row] = found[parent] ?? parent;
    else found[row] = closed.has(parent) ? parent : row;
  }
  return found;
}

/** The pixels of a text of 13 px: letters of Chinese and Korean are twice as wide. */
export function textWidth(text: string): number {
  let width = 0;
  for (const letter of text) width += (letter.codePointAt(0) ?? 0) > 0x1100 ? 13 : /[A-Zmw@]/.test(letter) ? 9.5 : /[iljt.,:'|!]/.test(letter) ? 4.5 : 7.2;
  return width;
}

/** The second line of a task: its operator, and its trigger rule if that is not the usual one. */
export function metaOf(structure: Structure, row: number): string {
  const operator = structure.operators[structure.operator[row] ?? -1] ?? "", rule = structure.trigger_rules[structure.trigger_rule[row] ?? -1] ?? "all_success";
  return rule === "all_success" ? operator : `${operator} · ${rule}`;
}

const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

/** The boxes and edges of a graph. `only`: the tasks that are shown; null: all. */
export function graphModel(structure: Structure, closed: ReadonlySet<number>, only: ReadonlySet<number> | null = null): GraphModel {
  const standsFor = representatives(structure, closed);
  const nodes: GraphNode[] = [];
  const shown = new Set<number>();
  for (let row = 0; row < structure.ids.length; row += 1) {
    if (standsFor[row] !== row || (only && !contains(structure, row, only))) continue;
    const kind = !isGroup(structure, row) ? "task" : closed.has(row) ? "closed" : "open";
    const name = textWidth(nameOf(structure, row));
    const below = kind === "task" ? textWidth(metaOf(structure, row)) * 0.86 : 80;
    shown.add(row);
    nodes.push({
      row, kind, parent: structure.parents[row] ?? -1,
      width: Math.round(clamp(Math.max(name, below) + (isMapped(structure, row) ? 110 : kind === "closed" ? 84 : 58), 132, 300)), height: kind === "closed" ? 52 : 44,
    });
  }
  return { nodes, edges: edgesBetween(structure, standsFor, shown) };
}

function edgesBetween(structure: Structure, standsFor: Int32Array, shown: ReadonlySet<number>): GraphEdge[] {
  const labels = new Map(structure.edge_labels.map(([from, to, text]) => [`${from}-${to}`, text]));
  const setups = new Set(structure.setups), teardowns = new Set(structure.teardowns);
  const found = new Map<string, GraphEdge>();
  for (let at = 0; at < structure.edges.length; at += 2) {
    const up = structure.edges[at] ?? 0, down = structure.edges[at + 1] ?? 0;
    const from = standsFor[up] ?? up, to = standsFor[down] ?? down;
    if (from === to || !shown.has(from) || !shown.has(to)) continue;
    const id = `${from}-${to}`;
    const label = labels.get(`${up}-${down}`) ?? "";
    const known = found.get(id);
    if (!known) found.set(id, { id, from, to, count: 1, label, cleanup: setups.has(up) && teardowns.has(down) });
    else {
      known.count += 1;
      if (known.label !== label) known.label ||= label;
    }
  }
  return [...found.values()];
}

function contains(structure: Structure, row: number, tasks: ReadonlySet<number>): boolean {
  for (let one = row; one < (structure.ends[row] ?? row + 1); one += 1) if (tasks.has(one)) return true;
  return false;
}

export interface Neighbours {
  up: number[][];
  down: number[][];
}

/** The direct upstream and downstream tasks of each row. */
export function neighbours(structure: Structure): Neighbours {
  const up: number[][] = structure.ids.map(() => []), down: number[][] = structure.ids.map(() => []);
  for (let at = 0; at < structure.edges.length; at += 2) {
    const from = structure.edges[at] ?? 0, to = structure.edges[at + 1] ?? 0;
    up[to]?.push(from);
    down[from]?.push(to);
  }
  return { up, down };
}

export interface Path {
  /** Tasks that a selected row waits for, directly or not; with the row itself, or the tasks inside it. */
  before: Set<number>;
  /** Tasks that wait for it; with itself. */
  after: Set<number>;
}

/** The tasks upstream and downstream of a row, at most `limit` tasks on each side, the nearest first. */
export function pathOf(structure: Structure, beside: Neighbours, row: number, limit = Infinity): Path {
  const inside: number[] = [];
  for (let one = row; one < (structure.ends[row] ?? row + 1); one += 1) if (!isGroup(structure, one)) inside.push(one);
  const walk = (next: number[][]): Set<number> => {
    const seen = new Set(inside);
    const queue = [...inside];
    for (let at = 0; at < queue.length && seen.size < limit + inside.length; at += 1) {
      for (const one of next[queue[at] ?? 0] ?? []) {
        if (seen.has(one)) continue;
        seen.add(one);
        queue.push(one);
      }
    }
    return seen;
  };
  return { before: walk(beside.up), after: walk(beside.down) };
}

/** The rows of a model that are on a path. */
export function nodesOnPath(structure: Structure, model: GraphModel, path: Path): Set<number> {
  const found = new Set<number>();
  for (const { row } of model.nodes) if (contains(structure, row, path.before) || contains(structure, row, path.after)) found.add(row);
  return found;
}

/** Whether an edge between two boxes is on a path. It has to lead to the selection or away from it, not past it. */
export function edgesOnPath(structure: Structure, model: GraphModel, path: Path): Set<string> {
  const found = new Set<string>();
  const inBefore = new Map<number, boolean>(), inAfter = new Map<number, boolean>();
  for (const { row } of model.nodes) {
    inBefore.set(row, contains(structure, row, path.before));
    inAfter.set(row, contains(structure, row, path.after));
  }
  for (const { id, from, to } of model.edges) if ((inBefore.get(from) && inBefore.get(to)) || (inAfter.get(from) && inAfter.get(to))) found.add(id);
  return found;
}

/** How many tasks of a group are in which state: [state code, tasks], by code. */
export function groupCounts(structure: Structure, states: ArrayLike<number>, group: number): [number, number][] {
  const found = new Map<number, number>();
  for (let row = group + 1; row < (structure.ends[group] ?? 0); row += 1) {
    if (!isGroup(structure, row)) found.set(states[row] ?? -1, (found.get(states[row] ?? -1) ?? 0) + 1);
  }
  return [...found].sort((a, b) => a[0] - b[0]);
}
