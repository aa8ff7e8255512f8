import { describe, expect, it } from "vitest";

import { fieldsOf, inputOf } from "./form";

const PARAMS = {
  copies: { value: 1, description: "Copies", schema: { type: "integer", minimum: 1, maximum: 100 } },
  paper: { value: "A4", schema: { type: "string", enum: ["A4", "A5"] } },
  draft: { value: false, schema: { type: "boolean" } },
  pages: { value: [1, 2], schema: { type: "array" } },
  note: { value: null, schema: { type: ["null", "string"] } },
};

describe("fieldsOf", () => {
  it("chooses a field by the type of the schema", () => {
    expect(fieldsOf(PARAMS).map((one) => [one.name, one.kind, one.value])).toEqual([
      ["copies", "number", "1"], ["paper", "choice", "A4"], ["draft", "boolean", "false"], ["pages", "json", "[1,2]"], ["note", "text", ""],
    ]);
  });
});

describe("inputOf", () => {
  const fields = fieldsOf(PARAMS);
  const values = { copies: "3", paper: "A5", draft: "true", pages: "[7]", note: "x" };
  it("gives values of the right types", () => {
    expect(inputOf(fields, values)).toEqual({ input: { copies: 3, paper: "A5", draft: true, pages: [7], note: "x" }, wrong: "" });
  });
  it("names the first field that does not fit", () => {
    expect(inputOf(fields, { ...values, copies: "101" }).wrong).toBe("copies");
    expect(inputOf(fields, { ...values, copies: "" }).wrong).toBe("copies");
    expect(inputOf(fields, { ...values, pages: "[" }).wrong).toBe("pages");
  });
});
