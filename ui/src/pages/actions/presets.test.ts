import { describe, expect, it } from "vitest";

import { parsePresets, PRESETS_MAX, withPreset } from "./presets";

describe("parsePresets", () => {
  it("reads what was stored", () => {
    expect(parsePresets('[{"name":"small","conf":{"rows":5}}]')).toEqual([{ name: "small", conf: { rows: 5 } }]);
  });
  it("leaves out what is no preset", () => {
    expect(parsePresets('[1,{"name":""},{"name":"x","conf":[1]},{"name":"y","conf":{}}]')).toEqual([{ name: "y", conf: {} }]);
    for (const text of [null, "", "{}", "not JSON"]) expect(parsePresets(text)).toEqual([]);
  });
});

describe("withPreset", () => {
  it("replaces one of the same name", () => {
    expect(withPreset([{ name: "a", conf: { n: 1 } }, { name: "b", conf: {} }], { name: "a", conf: { n: 2 } })).toEqual([{ name: "b", conf: {} }, { name: "a", conf: { n: 2 } }]);
  });
  it("forgets the oldest of too many", () => {
    const many = Array.from({ length: PRESETS_MAX }, (_, at) => ({ name: String(at), conf: {} }));
    const found = withPreset(many, { name: "new", conf: {} });
    expect([found.length, found[0]?.name, found.at(-1)?.name]).toEqual([PRESETS_MAX, "1", "new"]);
  });
});
