import { describe, expect, it } from "vitest";

import { fieldOf, textOf, valueOf, withValues, type Param } from "./schema";

function field(schema: Param["schema"], value: unknown = null) {
  return fieldOf("p", { value, description: null, schema });
}

describe("the kind of a field", () => {
  it.each([
    [{ type: "string" }, "text"], [{ type: "string", format: "multiline" }, "lines"], [{ type: ["null", "integer"] }, "number"], [{ type: "boolean" }, "boolean"],
    [{ enum: [1, 2] }, "choice"], [{ type: "object" }, "json"], [{ type: "array", examples: ["a"] }, "choices"], [{ type: "string", format: "date" }, "date"], [{ const: 3 }, "fixed"],
  ] as const)("%j is %s", (schema, kind) => {
    expect(field(schema as Param["schema"]).kind).toBe(kind);
  });

  it("follows the value where there is no type", () => {
    expect(field({}, true).kind).toBe("boolean");
    expect(field({}, 3).kind).toBe("number");
    expect(field({}, { a: 1 }).kind).toBe("json");
  });
});

describe("the value of a text", () => {
  it("is null for an empty text, but not where a text is required", () => {
    expect(valueOf(field({ type: ["null", "string"] }), "")).toEqual({ ok: true, value: null });
    expect(valueOf(field({ type: "string" }), "")).toEqual({ ok: true, value: "" });
  });

  it("says what is wrong", () => {
    expect(valueOf(field({ type: "object" }), "{")).toEqual({ ok: false, problem: "json" });
    expect(valueOf(field({ type: "number" }), "x")).toEqual({ ok: false, problem: "number" });
  });

  it.each([["text", "a"], ["number", 3.5], ["json", { a: [1] }]] as const)("survives the way to a text and back: %s", (kind, value) => {
    const schema: Param["schema"] = { type: kind === "text" ? "string" : kind === "number" ? "number" : "object" };
    expect(valueOf(field(schema), textOf(kind, value))).toEqual({ ok: true, value });
  });
});

describe("the values of former runs", () => {
  it("are listed once each, the newest first, without runs that had none", () => {
    const runs = [{ id: 5, conf: { a: 1 } }, { id: 4, conf: {} }, { id: 3, conf: { a: 1 } }, { id: 2, conf: null }, { id: 1, conf: { a: 2 } }];
    expect(withValues(runs).map((one) => one.id)).toEqual([5, 1]);
  });
});
