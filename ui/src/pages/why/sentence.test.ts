import { describe, expect, it } from "vitest";

import { partsOf } from "./sentence";

describe("the moments in a sentence", () => {
  it("are parts of their own", () => {
    expect(partsOf("It waits until 2026-11-27T08:43:49.911426Z (exit code 1).")).toEqual([
      { text: "It waits until ", moment: false }, { text: "2026-11-27T08:43:49.911426Z", moment: true }, { text: " (exit code 1).", moment: false },
    ]);
    expect(partsOf("2026-11-27T08:43:49+09:00")).toEqual([{ text: "2026-11-27T08:43:49+09:00", moment: true }]);
  });
  it("stay in the ids of runs", () => {
    const sentence = "The run manual__2026-11-27T03:43:48.983135+00:00_3a69b7e3 has not ended.";
    expect(partsOf(sentence)).toEqual([{ text: sentence, moment: false }]);
    expect(partsOf("No moment at all.")).toEqual([{ text: "No moment at all.", moment: false }]);
  });
});
