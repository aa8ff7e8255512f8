// The counts in the overview of a DAG. Pure.
import { isGroup, type Structure } from "../graph/model";
import type { Column } from "../grid/cells";

export interface FailingTask {
  row: number;
  /** Number of runs in which the task failed. */
  runs: number;
  /** The newest of these runs. */
  lastRunId: string;
}

/** The tasks that failed in the most runs, those first. */
export function failingTasks(columns: readonly Column[], structure: Structure, states: readonly string[], most = 8): FailingTask[] {
  const failed = states.indexOf("failed");
  const found = new Map<number, FailingTask>();
  for (const { run, cells } of columns) {
    for (let row = 0; row < cells.length; row += 1) {
      if (cells[row] !== failed || isGroup(structure, row)) continue;
      const known = found.get(row);
      found.set(row, { row, runs: (known?.runs ?? 0) + 1, lastRunId: run.run_id });
    }
  }
  return [...found.values()].sort((a, b) => b.runs - a.runs || a.row - b.row).slice(0, most);
}

/** How long a run took, seconds; null: it has not ended, or never started. */
export function runSeconds(run: { start_date?: string | null; end_date?: string | null }): number | null {
  return run.start_date && run.end_date ? Math.max(0, (Date.parse(run.end_date) - Date.parse(run.start_date)) / 1000) : null;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800] as const;

/** Round values of an axis from 0 to at least `most` seconds, two to four of them without 0. */
export function axisSteps(most: number): number[] {
  const step = STEPS.find((one) => most / one <= 3.2) ?? Math.ceil(most / 3 / 86_400) * 86_400;
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) }, (_, at) => (at + 1) * step);
}
