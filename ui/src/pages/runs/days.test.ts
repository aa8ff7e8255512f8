import { describe, expect, it } from "vitest";

import { dayStart, nextDay } from "./days";

describe("dayStart", () => {
  it("gives midnight of the zone in UTC", () => {
    expect(dayStart("2026-11-22", "UTC")).toBe("2026-11-22T00:00:00.000Z");
    expect(dayStart("2026-11-22", "Asia/Seoul")).toBe("2026-11-21T15:00:00.000Z");
    expect(dayStart("2026-07-01", "America/New_York")).toBe("2026-07-01T04:00:00.000Z");
  });
  it("is right on the days when the offset changes", () => {
    expect(dayStart("2026-03-29", "Europe/Berlin")).toBe("2026-03-28T23:00:00.000Z");
    expect(dayStart("2026-10-25", "Europe/Berlin")).toBe("2026-10-24T22:00:00.000Z");
    expect(dayStart("2026-03-30", "Europe/Berlin")).toBe("2026-03-29T22:00:00.000Z");
  });
  it("refuses what is no day", () => {
    expect(dayStart("", "UTC")).toBeUndefined();
    expect(dayStart("2026-13-45", "UTC")).toBeUndefined();
    expect(dayStart("yesterday", "UTC")).toBeUndefined();
  });
});

describe("nextDay", () => {
  it("crosses months and years", () => {
    expect(nextDay("2026-02-28")).toBe("2026-03-01");
    expect(nextDay("2026-12-31")).toBe("2027-01-01");
  });
});
