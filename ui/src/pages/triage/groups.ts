// What the triage page lists, as rows: the failed task instances of one run are one row. Pure.
import type { Schemas } from "../../api/client";

export type GroupName = "failed" | "late" | "blocked" | "running";
export const GROUPS: readonly GroupName[] = ["failed", "late", "blocked", "running"];

/** The failed task instances of one run; the newest failure first. */
export interface FailedRun {
  dagId: string;
  runId: string;
  runState: string;
  runAfter: string;
  tasks: readonly [Schemas["TriageFailure"], ...Schemas["TriageFailure"][]];
  upstreamFailed: number;
}

export function byRun(failures: readonly Schemas["TriageFailure"][]): FailedRun[] {
  const found = new Map<string, FailedRun>();
  for (const one of failures) {
    const key = `${one.dag_id}\n${one.run_id}`;
    const known = found.get(key);
    found.set(key, {
      dagId: one.dag_id,
      runId: one.run_id,
      runState: one.run_state,
      runAfter: one.run_after,
      tasks: known ? [...known.tasks, one] : [one],
      upstreamFailed: one.upstream_failed,
    });
  }
  return [...found.values()];
}

/** How many runs failed. The list is cut at some length, the server's count is not; it counts DAGs whose newest ended run failed. */
export function failedCount(data: Pick<Schemas["Triage"], "failed" | "failed_total">): number {
  return Math.max(byRun(data.failed).length, data.failed_total);
}

/** The group to show on a phone: the wanted one, else the first with rows. */
export function shownGroup(wanted: string, counts: Readonly<Record<GroupName, number>>): GroupName {
  const named = GROUPS.find((one) => one === wanted);
  return named ?? GROUPS.find((one) => counts[one] > 0) ?? "failed";
}

/** When the run is expected to end, relative to now. */
export type Expectation =
  | { kind: "unknown" | "queued" }
  | { kind: "range"; from: string; to: string }
  | { kind: "moment" | "past"; at: string };

export function expectation(run: Pick<Schemas["TriageRun"], "state" | "expected_from" | "expected_to" | "start_date">, now: number): Expectation {
  if (run.start_date === null || run.state === "queued") return { kind: "queued" };
  if (run.expected_from === null || run.expected_to === null) return { kind: "unknown" };
  if (Date.parse(run.expected_to) < now) return { kind: "past", at: run.expected_to };
  const from = Math.max(Date.parse(run.expected_from), now);
  if (Math.abs(Date.parse(run.expected_to) - from) < 60_000) return { kind: "moment", at: run.expected_to };
  return { kind: "range", from: new Date(from).toISOString(), to: run.expected_to };
}
