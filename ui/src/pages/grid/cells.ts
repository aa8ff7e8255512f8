// The states of a window of the grid, as the server sends them and as the page keeps them. Pure.
import type { Schemas } from "../../api/client";

export type Cells = Schemas["Cells"];
export type CellsRun = Schemas["CellsRun"];

/** No task instance in this run. */
export const ABSENT = -1;

/** One run with its states unpacked: `cells[row]` is an index of `states`, or ABSENT. */
export interface Column {
  run: CellsRun;
  cells: Int8Array;
}

export interface Window {
  version: number;
  rows: number;
  states: readonly string[];
  /** The oldest first. */
  columns: readonly Column[];
  older: boolean;
  token: string;
  head: Schemas["PageDagHead"] | null;
}

/** Unpacks stretches of equal states: length, state, length, state, … */
export function unpack(stretches: readonly number[], rows: number): Int8Array {
  const found = new Int8Array(rows).fill(ABSENT);
  let at = 0;
  for (let place = 0; place + 1 < stretches.length; place += 2) {
    const end = Math.min(rows, at + (stretches[place] ?? 0));
    found.fill(stretches[place + 1] ?? ABSENT, at, end);
    at = end;
  }
  return found;
}

/** The window after an answer. Runs that the answer does not send are those of the former window. */
export function merge(former: Window | undefined, answer: Cells): Window {
  const kept = new Map<number, Column>();
  if (former?.version === answer.version && former.rows === answer.rows) for (const one of former.columns) kept.set(one.run.id, one);
  for (const run of answer.runs) kept.set(run.id, { run, cells: unpack(run.cells, answer.rows) });
  return {
    version: answer.version, rows: answer.rows, states: answer.states, older: answer.older, token: answer.token, head: answer.head,
    columns: answer.order.flatMap((id) => kept.get(id) ?? []),
  };
}

/** How many task instances of all runs are in each state, in the order of `states`. */
export function totals(window: Window): number[] {
  const found = new Array<number>(window.states.length).fill(0);
  for (const { run } of window.columns) run.totals.forEach((count, state) => (found[state] = (found[state] ?? 0) + count));
  return found;
}

/** A cell by its row in the structure and its column. */
export interface CellPlace {
  row: number;
  column: number;
}

/** The next cell of a task with instances in this state: newest runs first, in each run from the top; after the last one the first. `tasks`: whether a row is a task. */
export function nextCell(window: Window, tasks: (row: number) => boolean, state: number, after: CellPlace): CellPlace | null {
  const { columns, rows } = window;
  const total = columns.length * rows;
  const place = (at: number): CellPlace => ({ row: at % rows, column: columns.length - 1 - Math.floor(at / rows) });
  const from = after.row < 0 || after.column < 0 ? -1 : (columns.length - 1 - after.column) * rows + after.row;
  for (let step = 1; step <= total; step += 1) {
    const found = place((from + step + total) % total);
    const column = columns[found.column];
    if (column && has(column, found.row, state) && tasks(found.row)) return found;
  }
  return null;
}

/** A mapped task has its worst state in `cells`, and all of them in `mapped`. */
function has({ cells, run }: Column, row: number, state: number): boolean {
  if (cells[row] === state) return true;
  const counts = run.mapped[String(row)];
  return counts?.some((one, at) => at % 2 === 0 && one === state) ?? false;
}
