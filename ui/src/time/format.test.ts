import { describe, expect, it } from "vitest";

import { durationText, isDue, isoSeconds, momentText, relativeText, zoneName } from "./format";

describe("durations have two units at most", () => {
  it.each([[0.34, "340ms"], [2.5, "2.5s"], [12, "12s"], [59.6, "1m 00s"], [192, "3m 12s"], [3840, "1h 04m"], [97_200, "1d 03h"], [-1, "0ms"]] as const)("%d s is %s", (seconds, text) => {
    expect(durationText(seconds)).toBe(text);
  });
});

describe("durations of an API", () => {
  it.each([["PT14400S", 14_400], ["PT4H", 14_400], ["P1DT1H0.5S", 90_000.5], ["P", null], ["PT", null], ["4 hours", null]] as const)("%s is %s s", (text, seconds) => {
    expect(isoSeconds(text)).toBe(seconds);
  });
});

describe("moments", () => {
  it("are shown in the chosen zone", () => {
    expect(momentText("2026-11-22T02:00:07Z", "UTC")).toBe("2026-11-22 02:00:07");
    expect(momentText("2026-11-22T02:00:07Z", "Asia/Seoul", "minute")).toBe("2026-11-22 11:00");
    expect(momentText("2026-11-21T23:00:00Z", "Europe/Berlin", "day")).toBe("2026-11-22");
  });

  it("name the zone of their date", () => {
    expect(zoneName("UTC", 0)).toBe("UTC");
    expect(zoneName("America/New_York", Date.parse("2026-07-01T00:00:00Z"))).toBe("EDT");
  });

  it("are told from now in the language", () => {
    expect(relativeText("2026-11-22T05:00:00Z", Date.parse("2026-11-22T00:00:00Z"), "en")).toBe("in 5 hr.");
  });

  it("are due from the planned moment on", () => {
    const now = Date.parse("2026-11-22T00:00:00Z");
    expect(isDue("2026-11-22T00:00:01Z", now)).toBe(false);
    expect(isDue("2026-11-22T00:00:00Z", now)).toBe(true);
    expect(isDue("2013-01-01T00:00:00Z", now)).toBe(true);
  });
});
