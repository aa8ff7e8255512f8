import { expect, it } from "vitest";

import type { Structure } from "../graph/model";
import type { Column } from "../grid/cells";
import { axisSteps, failingTasks, runSeconds } from "./overview";

const STRUCTURE = { ids: ["g", "g.a", "b"], kinds: [1, 0, 0] } as unknown as Structure;
const column = (id: string, cells: number[]): Column => ({ run: { run_id: id } as Column["run"], cells: Int8Array.from(cells) });

it("counts in how many runs a task failed, without its group", () => {
  const columns = [column("r1", [1, 1, 0]), column("r2", [1, 1, 1]), column("r3", [0, 0, -1])];
  expect(failingTasks(columns, STRUCTURE, ["success", "failed"])).toEqual([{ row: 1, runs: 2, lastRunId: "r2" }, { row: 2, runs: 1, lastRunId: "r2" }]);
  expect(failingTasks(columns, STRUCTURE, ["success", "failed"], 1)).toHaveLength(1);
});

it("measures only runs that have ended", () => {
  expect(runSeconds({ start_date: "2026-01-01T00:00:00Z", end_date: "2026-01-01T00:01:00Z" })).toBe(60);
  expect(runSeconds({ start_date: "2026-01-01T00:00:00Z", end_date: null })).toBeNull();
  expect(runSeconds({})).toBeNull();
});

it("has round values on its axis", () => {
  expect(axisSteps(515)).toEqual([300, 600]);
  expect(axisSteps(0)).toEqual([1]);
  expect(axisSteps(90)).toEqual([30, 60, 90]);
  expect(axisSteps(30 * 86_400).at(-1)).toBeGreaterThanOrEqual(30 * 86_400);
});
