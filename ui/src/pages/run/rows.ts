// The tasks of a run as rows of a table. Pure.
import type { Schemas } from "../../api/client";

export interface TaskRow {
  /** Its row in the structure. */
  at: number;
  id: string;
  /** The part of the id before the name, with its dot; empty outside of groups. */
  group: string;
  name: string;
  isMapped: boolean;
  state: string;
  /** Milliseconds after the start of the run; −1: not started. */
  start: number;
  /** Milliseconds; −1: it has not ended. */
  duration: number;
  tries: number;
  instances: number;
  operator: string;
}

type Run = Pick<Schemas["PageRun"], "states" | "state" | "start_ms" | "duration_ms" | "tries" | "instances">;
type Structure = Pick<Schemas["Structure"], "ids" | "kinds" | "parents" | "labels" | "operators" | "operator">;

export function taskRows(structure: Structure, run: Run): TaskRow[] {
  const found: TaskRow[] = [];
  structure.ids.forEach((id, at) => {
    const kind = structure.kinds[at];
    const state = run.state[at] ?? -1;
    if ((kind !== 0 && kind !== 2) || state < 0) return;
    const parent = structure.parents[at] ?? -1;
    const prefix = parent >= 0 ? `${structure.ids[parent]}.` : "";
    const inside = prefix !== "" && id.startsWith(prefix);
    found.push({
      at, id, group: inside ? prefix : "", name: structure.labels[String(at)] ?? (inside ? id.slice(prefix.length) : id), isMapped: kind === 2,
      state: run.states[state] ?? "none", start: run.start_ms[at] ?? -1, duration: run.duration_ms[at] ?? -1, tries: run.tries[at] ?? 0,
      instances: run.instances[at] ?? 0, operator: structure.operators[structure.operator[at] ?? -1] ?? "",
    });
  });
  return found;
}

/** How many rows are in each state. */
export function countStates(rows: readonly TaskRow[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const one of rows) found.set(one.state, (found.get(one.state) ?? 0) + 1);
  return found;
}

/** States that need somebody: in the order without a choice they stand at the top. */
const URGENT = ["failed", "awaiting_input", "up_for_retry", "upstream_failed"];

/** The rows with a state and a part of the id, ordered: `task`, `start`, `duration`, `tries`, with `-`: descending; empty: what failed, then upstream first. */
export function chosenRows(rows: readonly TaskRow[], state: string, text: string, order: string, elapsed: number): TaskRow[] {
  const words = text.trim().toLowerCase();
  const found = rows.filter((one) => (state === "" || one.state === state) && (words === "" || one.id.toLowerCase().includes(words) || one.name.toLowerCase().includes(words)));
  const down = order.startsWith("-");
  const field = down ? order.slice(1) : order;
  const valueOf = (one: TaskRow): number => {
    if (field === "start") return one.start < 0 ? Infinity : one.start;
    if (field === "duration") return one.start < 0 ? -1 : one.duration < 0 ? elapsed - one.start : one.duration;
    return one.tries;
  };
  if (field === "task") found.sort((a, b) => a.id.localeCompare(b.id));
  else if (field === "start" || field === "duration" || field === "tries") found.sort((a, b) => valueOf(a) - valueOf(b) || a.at - b.at);
  else if (field === "") {
    const rank = (one: TaskRow): number => (URGENT.includes(one.state) ? URGENT.indexOf(one.state) : URGENT.length);
    found.sort((a, b) => rank(a) - rank(b) || a.at - b.at);
  }
  return down ? found.reverse() : found;
}
