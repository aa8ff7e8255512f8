import { describe, expect, it } from "vitest";

import { ansiPieces, plainText } from "./ansi";

describe("ansiPieces", () => {
  it("styles what stands between the sequences", () => {
    expect(ansiPieces("a \u001b[31mred \u001b[1mbold\u001b[0m end")).toEqual([
      { text: "a " }, { text: "red ", colour: 1 }, { text: "bold", colour: 1, bold: true }, { text: " end" },
    ]);
  });
  it("knows bright colours, backgrounds and resets of one style", () => {
    expect(ansiPieces("\u001b[1;92;44mx\u001b[22;39my\u001b[49mz")).toEqual([
      { text: "x", bold: true, colour: 10, background: 4 }, { text: "y", background: 4 }, { text: "z" },
    ]);
  });
  it("maps 256 colours and true colours to the sixteen", () => {
    expect(ansiPieces("\u001b[38;5;196mx\u001b[38;2;0;0;120my\u001b[38;5;9mz\u001b[38;5;255mw").map((one) => one.colour)).toEqual([9, 4, 9, 15]);
  });
  it("removes other sequences and never keeps an escape character", () => {
    const text = "\u001b]8;;http://x\u0007link\u001b]8;;\u0007\u001b[2K\u001b[1A\u001bM\u0008 <b>\u001b[";
    expect(ansiPieces(text).map((one) => one.text).join("")).toBe("link <b>[");
    expect(plainText(text)).toBe("link <b>[");
  });
  it("keeps tabs and is fast on a long line", () => {
    expect(plainText("a\tb")).toBe("a\tb");
    const started = performance.now();
    ansiPieces("\u001b[".repeat(50_000));
    ansiPieces("\u001b]".repeat(2_000));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});
