import { describe, expect, it } from "vitest";

import type { TaskRow } from "../run/rows";
import { domainOf, labelled, rowsOf, shownSpans, spansOf, ticksOf, totalsOf, unionOf, type Bar } from "./model";

const bar = (map_index: number, ...spans: number[]): Bar => ({ row: 2, map_index, state: 4, spans });
const task = (at: number, instances: number): TaskRow => ({
  at, id: `t${at}`, group: "", name: `t${at}`, isMapped: instances > 1, state: "success", start: 0, duration: 1, tries: 1, instances, operator: "",
});

describe("spans", () => {
  it("reads phases and leaves unknown ones out", () => {
    expect(spansOf(bar(0, 0, 0, 10, 3, 10, 5, 99, 15, 1))).toEqual([{ phase: "upstream", start: 0, end: 10 }, { phase: "running", start: 10, end: 15 }]);
  });
  it("draws a task without known spans by its state", () => {
    const retried = { ...task(1, 1), state: "up_for_retry", start: 10, duration: 20 };
    expect(shownSpans(retried, [])).toEqual([{ phase: "retry", start: 10, end: 30 }]);
    expect(shownSpans({ ...retried, state: "failed" }, [])).toEqual([{ phase: "running", start: 10, end: 30 }]);
    expect(shownSpans({ ...retried, state: "scheduled" }, [])).toEqual([]);
    expect(shownSpans(retried, spansOf(bar(0, 3, 10, 5)))).toEqual([{ phase: "running", start: 10, end: 15 }]);
  });
  it("joins the instances of a task, running on top", () => {
    expect(unionOf([bar(0, 3, 0, 10, 4, 10, 5), bar(1, 2, 0, 5, 3, 5, 10), bar(2, 3, 30, 5)])).toEqual([
      { phase: "queued", start: 0, end: 5 }, { phase: "retry", start: 10, end: 15 }, { phase: "running", start: 0, end: 15 }, { phase: "running", start: 30, end: 35 },
    ]);
  });
  it("adds up each phase, of the longest instance", () => {
    expect([...totalsOf([bar(0, 3, 0, 10, 4, 10, 5, 3, 15, 2), bar(1, 3, 5, 10)])]).toEqual([["running", 12], ["retry", 5]]);
  });
});

describe("rowsOf", () => {
  it("shows instances of open tasks and how many are missing", () => {
    const bars = [bar(0, 3, 0, 1), bar(1, 3, 0, 1)];
    const shown = rowsOf([task(1, 1), task(2, 5)], null, new Set(["t2", "t1"]), () => bars);
    expect(shown.map((one) => [one.task.id, one.mapIndex, one.omitted])).toEqual([["t1", undefined, undefined], ["t2", undefined, undefined], ["t2", 0, undefined], ["t2", 1, undefined], ["t2", undefined, 3]]);
    expect(rowsOf([task(1, 1), task(2, 5)], new Set([2]), new Set(), () => bars)).toHaveLength(1);
  });
});

describe("the axis", () => {
  it("names no mark whose text would meet the one before", () => {
    expect(labelled([0, 60, 120], 125, 190, 56)).toEqual([0, 60]);
    expect(labelled([0, 60, 120], 180, 270, 56)).toEqual([0, 60, 120]);
    expect(labelled([0, 60, 120], 125, 900, 56)).toEqual([0, 60, 120]);
    expect(labelled([0], 1, 100, 56)).toEqual([0]);
  });

  it("has round marks that do not touch", () => {
    expect(ticksOf(60_000, 600)).toEqual([0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    expect(ticksOf(0, 600)).toEqual([0]);
    for (const length of [1, 999, 12_345, 7_200_000, 900_000_000_000]) expect(ticksOf(length, 1000).length).toBeLessThan(13);
  });
  it("makes room for the usual times, but not for much more", () => {
    expect(domainOf(100, [[50, 60]])).toBe(110);
    expect(domainOf(100, [[50, 600]])).toBe(125);
    expect(domainOf(0, [])).toBe(1);
  });
});
