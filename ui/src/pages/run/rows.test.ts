import { describe, expect, it } from "vitest";

import { chosenRows, countStates, taskRows } from "./rows";

const structure = {
  ids: ["load", "night", "night.a", "night.b", "gone"], kinds: [0, 1, 0, 2, 0], parents: [-1, -1, 1, 1, -1], labels: { "2": "First" }, operators: ["Bash", "@task"],
  operator: [0, -1, 1, 1, 0],
};
const run = {
  states: ["none", "running", "failed", "success"], state: [3, 2, 2, 1, -1], start_ms: [0, 5, 5, 9, -1], duration_ms: [100, -1, 20, -1, -1], tries: [1, 2, 2, 1, 0],
  instances: [1, 2, 1, 12, 0],
};

describe("taskRows", () => {
  const rows = taskRows(structure, run);
  it("leaves out groups and tasks that the run does not have, and names the group", () => {
    expect(rows.map((one) => [one.id, one.group, one.name, one.state, one.instances])).toEqual([
      ["load", "", "load", "success", 1], ["night.a", "night.", "First", "failed", 1], ["night.b", "night.", "b", "running", 12],
    ]);
  });
  it("counts exactly the rows that the filter gives", () => {
    for (const [state, count] of countStates(rows)) expect(chosenRows(rows, state, "", "", 50)).toHaveLength(count);
    expect(chosenRows(rows, "", "FIRST", "", 50).map((one) => one.id)).toEqual(["night.a"]);
  });
  it("orders by the present duration of what still runs, and puts what failed first", () => {
    const order = (name: string): string[] => chosenRows(rows, "", "", name, 60).map((one) => one.id);
    expect(order("duration")).toEqual(["night.a", "night.b", "load"]);
    expect(order("-start")).toEqual(["night.b", "night.a", "load"]);
    expect(order("")).toEqual(["night.a", "load", "night.b"]);
  });
});
