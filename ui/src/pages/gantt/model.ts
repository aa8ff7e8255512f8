// The rows and bars of a Gantt chart. Pure. Times are milliseconds after the start of the run.
import type { TaskRow } from "../run/rows";

/** In the order of the server. */
export const PHASES = ["upstream", "limit", "queued", "running", "retry", "reschedule", "deferred", "restarting"] as const;
export type Phase = (typeof PHASES)[number];

/** The order of drawing: later phases are drawn over earlier ones. */
const PAINTED: readonly Phase[] = ["upstream", "limit", "queued", "deferred", "reschedule", "retry", "restarting", "running"];

export interface Bar {
  row: number;
  map_index: number;
  state: number;
  spans: readonly number[];
}

export interface Span {
  phase: Phase;
  start: number;
  end: number;
}

export interface GanttRow {
  task: TaskRow;
  /** Undefined: the task as a whole. */
  mapIndex?: number;
  /** Set for the row after the instances: number of instances that are left out. */
  omitted?: number;
}

/** The spans of one bar. An unknown phase of a newer server is left out. */
export function spansOf(bar: Bar): Span[] {
  const found: Span[] = [];
  for (let at = 0; at + 2 < bar.spans.length; at += 3) {
    const phase = PHASES[bar.spans[at] ?? -1], start = bar.spans[at + 1] ?? 0, length = bar.spans[at + 2] ?? 0;
    if (phase) found.push({ phase, start, end: start + length });
  }
  return found;
}

/** The spans of several instances as one row: for each phase the times in which any instance was in it, in the order to draw them. */
export function unionOf(bars: readonly Bar[]): Span[] {
  if (bars.length === 1) return spansOf(bars[0] as Bar);
  const all = bars.flatMap(spansOf);
  return PAINTED.flatMap((phase) => {
    const found: Span[] = [];
    for (const one of all.filter((span) => span.phase === phase).sort((a, b) => a.start - b.start)) {
      const last = found.at(-1);
      if (last && one.start <= last.end) last.end = Math.max(last.end, one.end);
      else found.push({ ...one });
    }
    return found;
  });
}

/** The phase that a state without its own spans stands for: a task that waits for its next try does not run. */
const PHASE_OF: Readonly<Record<string, Phase>> = {
  running: "running", success: "running", failed: "running", skipped: "running", up_for_retry: "retry", up_for_reschedule: "reschedule",
  deferred: "deferred", awaiting_input: "deferred", restarting: "restarting",
};

/** What to draw of a row. Where no spans are known (not read yet, or the history was removed), the summary of the run says when the task ran. */
export function shownSpans(task: Pick<TaskRow, "state" | "start" | "duration">, measured: readonly Span[]): readonly Span[] {
  if (measured.length) return measured;
  const phase = PHASE_OF[task.state];
  return phase && task.start >= 0 ? [{ phase, start: task.start, end: task.start + Math.max(0, task.duration) }] : [];
}

/** How long each phase took, of the longest instance for each. */
export function totalsOf(bars: readonly Bar[]): Map<Phase, number> {
  const found = new Map<Phase, number>();
  for (const bar of bars) {
    const own = new Map<Phase, number>();
    for (const { phase, start, end } of spansOf(bar)) own.set(phase, (own.get(phase) ?? 0) + end - start);
    for (const [phase, length] of own) found.set(phase, Math.max(found.get(phase) ?? 0, length));
  }
  return found;
}

/** The rows to show: tasks, and below an open one its instances. */
export function rowsOf(tasks: readonly TaskRow[], only: ReadonlySet<number> | null, open: ReadonlySet<string>, barsOf: (row: number) => readonly Bar[]): GanttRow[] {
  const found: GanttRow[] = [];
  for (const task of tasks) {
    if (only && !only.has(task.at)) continue;
    found.push({ task });
    if (task.instances > 1 && open.has(task.id)) {
      const bars = barsOf(task.at);
      for (const bar of bars) found.push({ task, mapIndex: bar.map_index });
      if (bars.length < task.instances) found.push({ task, omitted: task.instances - bars.length });
    }
  }
  return found;
}

const STEPS = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5];
const TICK_PIXELS = 90;

/** The marks of the time axis: at most one for each 90 pixels, at round times. */
export function ticksOf(length: number, pixels: number): number[] {
  if (length <= 0 || pixels <= 0) return [0];
  const least = (length / pixels) * TICK_PIXELS;
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / 864e5) * 864e5;
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, at) => at * step);
}

/** The marks that have a text. The text of the last one stands before its mark if there is no room behind it; it must not meet the one before. */
export function labelled(ticks: readonly number[], length: number, pixels: number, room: number): readonly number[] {
  const last = ticks.at(-1) ?? 0, gap = last - (ticks.at(-2) ?? -Infinity);
  const turned = (1 - last / length) * pixels < room;
  return turned && (gap / length) * pixels < 2 * room ? ticks.slice(0, -1) : ticks;
}

/** The end of the time axis: the run, and the usual times as far as they are not much longer. */
export function domainOf(elapsed: number, usual: Iterable<readonly [number, number]>): number {
  let end = elapsed;
  for (const [start, length] of usual) end = Math.max(end, Math.min(start + length, elapsed * 1.25));
  return Math.max(end, 1);
}
