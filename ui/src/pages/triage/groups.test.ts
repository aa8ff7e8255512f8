import { describe, expect, it } from "vitest";

import type { Schemas } from "../../api/client";
import { byRun, expectation, failedCount, shownGroup } from "./groups";

function failure(dag: string, run: string, task: string): Schemas["TriageFailure"] {
  return {
    dag_id: dag, run_id: run, run_state: "failed", run_after: "2026-11-22T02:00:00Z", task_id: task, map_index: -1, try_number: 1, tries: 1,
    start_date: null, end_date: null, error: null, upstream_failed: 2,
  };
}

describe("byRun", () => {
  it("makes one row of the failures of a run, in the order of their first failure", () => {
    const rows = byRun([failure("a", "1", "x"), failure("b", "1", "y"), failure("a", "1", "z"), failure("a", "2", "x")]);
    expect(rows.map((one) => [one.dagId, one.runId, one.tasks.map((task) => task.task_id)])).toEqual([
      ["a", "1", ["x", "z"]],
      ["b", "1", ["y"]],
      ["a", "2", ["x"]],
    ]);
  });
});

describe("failedCount", () => {
  it("is that of the server where the list was cut, and has the runs that still go on", () => {
    expect(failedCount({ failed: [failure("a", "1", "x"), failure("a", "1", "y")], failed_total: 120 })).toBe(120);
    expect(failedCount({ failed: [failure("a", "1", "x"), failure("b", "1", "x")], failed_total: 1 })).toBe(2);
  });
});

describe("shownGroup", () => {
  it("prefers the wanted group, then the first one with rows", () => {
    const counts = { failed: 0, late: 0, blocked: 2, running: 5 };
    expect(shownGroup("running", counts)).toBe("running");
    expect(shownGroup("", counts)).toBe("blocked");
    expect(shownGroup("<script>", { failed: 0, late: 0, blocked: 0, running: 0 })).toBe("failed");
  });
});

describe("expectation", () => {
  const now = Date.parse("2026-11-22T06:00:00Z");
  const run = { state: "running", start_date: "2026-11-22T05:00:00Z", expected_from: "2026-11-22T06:40:00Z", expected_to: "2026-11-22T07:10:00Z" };
  it("gives a range that is not before now", () => {
    expect(expectation(run, now)).toEqual({ kind: "range", from: "2026-11-22T06:40:00.000Z", to: "2026-11-22T07:10:00Z" });
    expect(expectation({ ...run, expected_from: "2026-11-22T05:00:00Z" }, now)).toMatchObject({ kind: "range", from: "2026-11-22T06:00:00.000Z" });
  });
  it("says when it was expected, if that has passed", () => {
    expect(expectation({ ...run, expected_to: "2026-11-22T05:59:00Z" }, now)).toEqual({ kind: "past", at: "2026-11-22T05:59:00Z" });
  });
  it("gives one moment for a range below a minute", () => {
    expect(expectation({ ...run, expected_to: "2026-11-22T06:40:30Z" }, now)).toEqual({ kind: "moment", at: "2026-11-22T06:40:30Z" });
  });
  it("does not guess without history or before the start", () => {
    expect(expectation({ ...run, expected_from: null, expected_to: null }, now)).toEqual({ kind: "unknown" });
    expect(expectation({ ...run, start_date: null }, now)).toEqual({ kind: "queued" });
  });
});
