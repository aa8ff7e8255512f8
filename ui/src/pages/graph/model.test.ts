import { describe, expect, it } from "vitest";

import { closedGroups, edgesOnPath, graphModel, groupCounts, nameOf, neighbours, nodesOnPath, pathOf, representatives, tasksIn, type Structure } from "./model";

// a ─▶ g{ b ─▶ h{ c } } ─▶ d ; a ─▶ d
const DAG: Structure = {
  dag_id: "x", display_name: "x", version: 1, task_count: 4,
  ids: ["a", "g", "g.b", "g.h", "g.h.c", "d"], parents: [-1, -1, 1, 1, 3, -1], kinds: [0, 1, 0, 3, 2, 0], ends: [1, 5, 3, 5, 5, 6],
  operators: ["Bash"], operator: [0, -1, 0, -1, 0, 0], trigger_rules: ["all_success"], trigger_rule: [0, -1, 0, -1, 0, 0], pools: ["p"], pool: [0, -1, 0, -1, 0, 0],
  retries: [0, -1, 0, -1, 0, 0], edges: [0, 2, 2, 4, 4, 5, 0, 5], edge_labels: [[0, 2, "yes"]], labels: { "5": "Done" }, docs: {}, setups: [0], teardowns: [5],
};

describe("graphModel", () => {
  it("shows all rows while all groups are open", () => {
    const { nodes, edges } = graphModel(DAG, new Set());
    expect(nodes.map((one) => [one.row, one.kind, one.parent])).toEqual([[0, "task", -1], [1, "open", -1], [2, "task", 1], [3, "open", 1], [4, "task", 3], [5, "task", -1]]);
    expect(edges.map((one) => [one.id, one.label, one.cleanup])).toEqual([["0-2", "yes", false], ["2-4", "", false], ["4-5", "", false], ["0-5", "", true]]);
  });
  it("gathers the edges of a closed group", () => {
    const { nodes, edges } = graphModel(DAG, new Set([1, 3]));
    expect(nodes.map((one) => one.row)).toEqual([0, 1, 5]);
    expect(edges.map((one) => [one.id, one.count])).toEqual([["0-1", 1], ["1-5", 1], ["0-5", 1]]);
  });
  it("shows only some tasks, with the groups around them", () => {
    expect(graphModel(DAG, new Set(), new Set([4, 5])).nodes.map((one) => one.row)).toEqual([1, 3, 4, 5]);
  });
});

it("names rows without the name of their group", () => {
  expect([0, 2, 4, 5].map((row) => nameOf(DAG, row))).toEqual(["a", "b", "c", "Done"]);
  expect(tasksIn(DAG, 1)).toBe(2);
});

it("closes groups first in a large DAG, and turns those that were toggled", () => {
  expect([...closedGroups(DAG, "", [])]).toEqual([]);
  expect([...closedGroups({ ...DAG, task_count: 301 }, "", ["g.h"])]).toEqual([1]);
  expect([...closedGroups(DAG, "closed", [])]).toEqual([1, 3]);
  expect([...closedGroups({ ...DAG, task_count: 301 }, "open", [])]).toEqual([]);
});

it("lets the outermost closed group stand for its tasks", () => {
  expect([...representatives(DAG, new Set([3]))]).toEqual([0, 1, 2, 3, 3, 5]);
  expect([...representatives(DAG, new Set([1]))]).toEqual([0, 1, 1, 1, 1, 5]);
});

describe("pathOf", () => {
  const beside = neighbours(DAG);
  it("finds what is upstream and downstream of a task", () => {
    const path = pathOf(DAG, beside, 4);
    expect([...path.before].sort()).toEqual([0, 2, 4]);
    expect([...path.after].sort()).toEqual([4, 5]);
    const model = graphModel(DAG, new Set());
    expect([...nodesOnPath(DAG, model, path)]).toEqual([0, 1, 2, 3, 4, 5]);
    expect([...edgesOnPath(DAG, model, path)]).toEqual(["0-2", "2-4", "4-5"]); // not 0-5: it leads past the selection
  });
  it("takes all tasks of a group", () => {
    const path = pathOf(DAG, beside, 1);
    expect([...path.before].sort()).toEqual([0, 2, 4]);
    expect([...path.after].sort()).toEqual([2, 4, 5]);
  });
  it("stops at a limit", () => {
    expect(pathOf(DAG, beside, 0, 1).after.size).toBeLessThanOrEqual(3);
    expect(pathOf(DAG, beside, 4, 1).before.has(2)).toBe(true);
  });
});

it("counts the tasks of a group by state", () => {
  expect(groupCounts(DAG, [4, 4, 5, 4, 4, 4], 1)).toEqual([[4, 1], [5, 1]]);
});
