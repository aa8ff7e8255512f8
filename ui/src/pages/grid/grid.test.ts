import { describe, expect, it } from "vitest";

import { merge, nextCell, totals, unpack, type Cells, type CellsRun } from "./cells";
import { foldText, readFolds, shownRows, type Structure } from "./rows";

function run(id: number, cells: number[]): CellsRun {
  return { id, cells, totals: [0, 1], mapped: {}, run_id: `r${id}` } as unknown as CellsRun;
}

function answer(order: number[], runs: CellsRun[], version = 1): Cells {
  return { dag_id: "d", version, rows: 4, rows_from: 0, rows_to: 4, states: ["none", "success"], order, runs, older: false, token: "t", head: null };
}

describe("stretches of equal states", () => {
  it("become one state for each row", () => {
    expect([...unpack([2, 4, 1, 0], 4)]).toEqual([4, 4, 0, -1]);
  });

  it("never write behind the last row", () => {
    expect([...unpack([9, 1], 2)]).toEqual([1, 1]);
  });
});

describe("a later answer", () => {
  const first = merge(undefined, answer([1, 2], [run(1, [4, 0]), run(2, [4, 0])]));

  it("keeps the runs that it does not send, and drops those that it does not name", () => {
    const second = merge(first, answer([2, 3], [run(3, [4, 1])]));
    expect(second.columns.map((one) => one.run.id)).toEqual([2, 3]);
    expect(second.columns[0]).toBe(first.columns[1]);
  });

  it("of another version keeps nothing", () => {
    expect(merge(first, answer([1, 2], [run(2, [4, 1])], 2)).columns.map((one) => one.run.id)).toEqual([2]);
  });

  it("leads from a state to its task instances: the newest run first, from the top, and round again", () => {
    const mapped = { ...run(2, [4, 0]), mapped: { 3: [0, 2, 1, 5] } } as CellsRun;
    const window = merge(undefined, answer([1, 2], [run(1, [1, 1, 2, 0, 1, 1]), mapped]));
    const all = (): boolean => true;
    const path = [{ row: -1, column: -1 }];
    for (let step = 0; step < 4; step += 1) path.push(nextCell(window, all, 1, path.at(-1) ?? { row: -1, column: -1 }) ?? { row: -1, column: -1 });
    expect(path.slice(1)).toEqual([{ row: 3, column: 1 }, { row: 0, column: 0 }, { row: 3, column: 0 }, { row: 3, column: 1 }]);
    expect(nextCell(window, (row) => row === 0, 1, { row: 0, column: 0 })).toEqual({ row: 0, column: 0 });
    expect(nextCell(window, all, 7, { row: -1, column: -1 })).toBeNull();
  });

  it("counts the states of all runs", () => {
    expect(totals(first)).toEqual([0, 2]);
  });
});

// load ─ group g (g.a, g.b) ─ end
const STRUCTURE = {
  ids: ["load", "g", "g.a", "g.b", "end"], parents: [-1, -1, 1, 1, -1], kinds: [0, 1, 0, 2, 0], ends: [1, 4, 3, 4, 5], labels: { "4": "The end" },
} as unknown as Structure;

describe("rows", () => {
  const none = readFolds("");

  it("have the name without that of their group, or the author's", () => {
    expect(shownRows(STRUCTURE, none, "").map((one) => one.label)).toEqual(["load", "g", "a", "b", "The end"]);
    expect(shownRows(STRUCTURE, none, "").map((one) => one.depth)).toEqual([0, 0, 1, 1, 0]);
  });

  it("of a folded group are left out", () => {
    expect(shownRows(STRUCTURE, readFolds(foldText(["g"])), "").map((one) => one.id)).toEqual(["load", "g", "end"]);
    expect(shownRows(STRUCTURE, readFolds("*"), "").map((one) => one.id)).toEqual(["load", "g", "end"]);
  });

  it("that match a filter stand with their group, folded or not", () => {
    expect(shownRows(STRUCTURE, readFolds("*"), "B").map((one) => one.id)).toEqual(["g", "g.b"]);
    expect(shownRows(STRUCTURE, none, "the e").map((one) => one.id)).toEqual(["end"]);
  });

  it("keep an id with a comma in the address", () => {
    expect(readFolds(foldText(["a,b"]))("a,b")).toBe(true);
    expect(readFolds(foldText(["a,b"]))("a")).toBe(false);
  });
});
