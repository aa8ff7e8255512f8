import { describe, expect, it } from "vitest";

import { blocksOf, spansOf } from "./doc";

describe("spansOf", () => {
  it("finds code, bold, italic and links", () => {
    expect(spansOf("a `b` **c** *d* [e](https://x.y)")).toEqual([
      { kind: "text", text: "a " }, { kind: "code", text: "b" }, { kind: "text", text: " " }, { kind: "bold", text: "c" }, { kind: "text", text: " " },
      { kind: "italic", text: "d" }, { kind: "text", text: " " }, { kind: "link", text: "e", href: "https://x.y" },
    ]);
  });
  it("makes no link of a script, and no HTML of anything", () => {
    expect(spansOf("[x](javascript:alert(1))").some((one) => one.kind === "link")).toBe(false);
    expect(spansOf("<b>x</b>")).toEqual([{ kind: "text", text: "<b>x</b>" }]);
  });
});

describe("blocksOf", () => {
  it("finds headings, lists, paragraphs and code, without the indent of the code", () => {
    expect(blocksOf("# Load\n\n    Reads the\n    orders.\n\n    - one\n    - two\n\n    ```\n    x = 1\n    ```")).toEqual([
      { kind: "heading", level: 1, spans: [{ kind: "text", text: "Load" }] },
      { kind: "text", spans: [{ kind: "text", text: "Reads the orders." }] },
      { kind: "list", ordered: false, items: [[{ kind: "text", text: "one" }], [{ kind: "text", text: "two" }]] },
      { kind: "code", text: "x = 1" },
    ]);
  });
  it("finds tables, also below a paragraph, and leaves lines with a bar that are none", () => {
    const cell = (text: string) => [{ kind: "text", text }];
    expect(blocksOf("Codes:\n| code | means |\n|:--|---|\n| a | one\\|two |\n| `b` |\n\nend")).toEqual([
      { kind: "text", spans: [{ kind: "text", text: "Codes:" }] },
      { kind: "table", head: [cell("code"), cell("means")], rows: [[cell("a"), cell("one|two")], [[{ kind: "code", text: "b" }]]] },
      { kind: "text", spans: [{ kind: "text", text: "end" }] },
    ]);
    expect(blocksOf("a | b\n---").map((one) => one.kind)).toEqual(["text"]);
    expect(blocksOf("a | b\nc | d").map((one) => one.kind)).toEqual(["text"]);
  });
  it("ends with an open code block and with any text", () => {
    expect(blocksOf("```\nx")).toEqual([{ kind: "code", text: "x" }]);
    expect(blocksOf("1. a\ntext\n- b").map((one) => one.kind)).toEqual(["list", "text", "list"]);
    expect(blocksOf("")).toEqual([]);
    expect(blocksOf("a".repeat(200_000))).toHaveLength(1);
  });
});
