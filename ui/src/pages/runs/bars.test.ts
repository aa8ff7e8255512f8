import { describe, expect, it } from "vitest";

import { fullBar } from "./bars";

describe("a full bar", () => {
  it("is the longest duration", () => expect(fullBar([100, 150, 160])).toBe(160));
  it("is not one exception among others", () => expect(fullBar([100, 100, 100, 100, 40_000])).toBe(200));
  it("is never nothing", () => {
    expect(fullBar([])).toBeGreaterThan(0);
    expect(fullBar([0, 0, 0])).toBeGreaterThan(0);
    expect(fullBar([0, 0, 0, 0, 5])).toBe(5);
  });
});
