import { describe, expect, it } from "vitest";

import { cellsOf, hitsIn, linesOf, rowAt, rowOfOffset, rowsOf, TEXT_MAX, topsOf, type LogPiece } from "./log-rows";

function piece(texts: string[], levels: (string | null)[] = []): LogPiece {
  return {
    size: 1000, start: 0, end: 1000, grows: false, first_error: null, searched: true, notice: null, texts, offsets: texts.map((_, at) => at * 10),
    times: texts.map(() => null), loggers: texts.map(() => null), levels: texts.map((_, at) => levels[at] ?? "info"),
  };
}
const NONE = new Set<number>();
const shown = (texts: string[], levels: (string | null)[] = [], least = 0, folds = new Map<number, boolean>(), reveal = NONE): string[] => {
  const lines = linesOf(piece(texts, levels));
  return rowsOf(lines, least, folds, reveal).map((row) => (row.group ? `${row.group.open ? "-" : "+"}${row.group.title} ${row.group.lines}` : `${" ".repeat(row.depth)}${lines[row.at]?.plain}`));
};

describe("linesOf", () => {
  it("splits a record with several lines and keeps its offset", () => {
    const lines = linesOf(piece(["a", "Traceback\n  File\nKeyError\n"]));
    expect(lines.map((one) => [one.offset, one.part, one.plain])).toEqual([[0, 0, "a"], [10, 0, "Traceback"], [10, 1, "  File"], [10, 2, "KeyError"]]);
  });
  it("cuts a very long line and says how much", () => {
    expect(linesOf(piece(["x".repeat(TEXT_MAX + 5)]))[0]).toMatchObject({ more: 5, cells: TEXT_MAX });
  });
});

describe("rowsOf", () => {
  it("closes a group, and opens it on request, for an error and for a wanted line", () => {
    const texts = ["a", "::group::rows", "b", "c", "::endgroup::", "d"];
    expect(shown(texts)).toEqual(["a", "+rows 2", "d"]);
    expect(shown(texts, [], 0, new Map([[10, true]]))).toEqual(["a", "-rows 2", " b", " c", "d"]);
    expect(shown(texts, [null, null, "error"])).toEqual(["a", "-rows 2", " b", " c", "d"]);
    expect(shown(texts, [], 0, new Map(), new Set([30]))).toEqual(["a", "-rows 2", " b", " c", "d"]);
  });
  it("accepts a group without an end, an end without a group, and groups in groups", () => {
    expect(shown(["::endgroup::", "a", "::group::x", "b"])).toEqual(["a", "+x 1"]);
    expect(shown(["::group::x", "::group::y", "b", "::endgroup::", "c", "::endgroup::", "d"], [], 0, new Map([[0, true]]))).toEqual(["-x 4", "+y 1", " c", "d"]);
  });
  it("keeps the lines of a level and above; a line without a level counts as info", () => {
    expect(shown(["a", "b", "c"], ["debug", "critical", null], 3)).toEqual(["b"]);
    expect(shown(["a", "b", "c"], ["debug", "critical", null], 1)).toEqual(["b", "c"]);
  });
});

describe("places", () => {
  it("wraps by columns and finds rows again", () => {
    const lines = linesOf(piece(["a", "x".repeat(25), "b"]));
    const rows = rowsOf(lines, 0, new Map(), NONE);
    const tops = topsOf(rows, lines, 10);
    expect([...tops]).toEqual([0, 18, 72, 90]);
    expect([0, 17, 18, 71, 72, 900].map((place) => rowAt(tops, place))).toEqual([0, 0, 1, 1, 2, 2]);
    expect([0, 5, 10, 99].map((offset) => rowOfOffset(rows, lines, offset))).toEqual([0, 1, 1, 2]);
    expect([...topsOf(rows, lines, 0)]).toEqual([0, 18, 36, 54]);
  });
  it("counts wide characters twice", () => {
    expect([cellsOf("abc"), cellsOf("数据"), cellsOf("한국 a")]).toEqual([3, 4, 6]);
  });
});

describe("hitsIn", () => {
  it("finds each place in any case", () => {
    expect(hitsIn("Error, ERROR", "error")).toEqual([[0, 5], [7, 12]]);
    expect(hitsIn("abc", "")).toEqual([]);
  });
});
