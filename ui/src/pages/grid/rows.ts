// Which rows of the structure are shown: folds of groups, and a filter by name. Pure.
import type { Schemas } from "../../api/client";

export type Structure = Schemas["Structure"];
export const TASK = 0, GROUP = 1, MAPPED = 2, MAPPED_GROUP = 3;

export interface Row {
  /** Its row in the structure. */
  at: number;
  id: string;
  label: string;
  depth: number;
  isGroup: boolean;
  isMapped: boolean;
  folded: boolean;
  /** Tasks inside a group. */
  size: number;
}

export function labelOf(structure: Structure, at: number): string {
  const given = structure.labels[String(at)];
  if (given) return given;
  const id = structure.ids[at] ?? "";
  const parent = structure.parents[at] ?? -1;
  const group = structure.ids[parent] ?? "";
  return group && id[group.length] === "." && id.startsWith(group) ? id.slice(group.length + 1) : id;
}

/** `*`: all groups are folded; else ids of folded groups, separated by commas (percent-encoded). */
export function readFolds(text: string): (id: string) => boolean {
  if (text === "*") return () => true;
  const ids = new Set(text.split(",").filter(Boolean).map(decodeURIComponent));
  return (id) => ids.has(id);
}

export function foldText(ids: readonly string[]): string {
  return ids.map((id) => encodeURIComponent(id)).join(",");
}

export function groupsOf(structure: Structure): string[] {
  return structure.ids.filter((_, at) => isGroup(structure.kinds[at]));
}

function isGroup(kind: number | undefined): boolean {
  return kind === GROUP || kind === MAPPED_GROUP;
}

const LETTER = 7.2, LEVEL = 12, AROUND = 80;

/** Pixels that the longest name with its indent needs, about. All rows count, so that folds and the filter move no column. */
export function namesWidth(structure: Structure): number {
  const depths: number[] = [];
  let widest = 0;
  structure.ids.forEach((_, at) => {
    const parent = structure.parents[at] ?? -1;
    const depth = parent < 0 ? 0 : (depths[parent] ?? 0) + 1;
    depths[at] = depth;
    widest = Math.max(widest, AROUND + depth * LEVEL + labelOf(structure, at).length * LETTER);
  });
  return Math.ceil(widest);
}

/** The rows to show. A filter shows matching tasks with the groups around them, and ignores folds. */
export function shownRows(structure: Structure, isFolded: (id: string) => boolean, filter: string): Row[] {
  const words = filter.trim().toLowerCase();
  const found: Row[] = [];
  const depths: number[] = [];
  const matching = words ? matches(structure, words) : null;
  let at = 0;
  while (at < structure.ids.length) {
    const id = structure.ids[at] ?? "";
    const parent = structure.parents[at] ?? -1;
    const depth = parent < 0 ? 0 : (depths[parent] ?? 0) + 1;
    depths[at] = depth;
    const end = structure.ends[at] ?? at + 1;
    if (matching && !matching[at]) {
      at = isGroup(structure.kinds[at]) ? end : at + 1;
      continue;
    }
    const group = isGroup(structure.kinds[at]);
    const folded = group && !words && isFolded(id);
    found.push({
      at, id, depth, label: labelOf(structure, at), isGroup: group, isMapped: structure.kinds[at] === MAPPED || structure.kinds[at] === MAPPED_GROUP, folded,
      size: group ? tasksIn(structure, at) : 1,
    });
    at = folded ? end : at + 1;
  }
  return found;
}

function tasksIn(structure: Structure, group: number): number {
  let count = 0;
  for (let at = group + 1; at < (structure.ends[group] ?? 0); at += 1) if (!isGroup(structure.kinds[at])) count += 1;
  return count;
}

function matches(structure: Structure, words: string): Uint8Array {
  const found = new Uint8Array(structure.ids.length);
  structure.ids.forEach((id, at) => {
    if (!id.toLowerCase().includes(words) && !labelOf(structure, at).toLowerCase().includes(words)) return;
    found.fill(1, at, structure.ends[at] ?? at + 1);
    for (let parent = structure.parents[at] ?? -1; parent >= 0; parent = structure.parents[parent] ?? -1) found[parent] = 1;
  });
  return found;
}
