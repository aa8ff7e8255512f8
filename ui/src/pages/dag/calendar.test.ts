import { expect, it } from "vitest";

import { addDays, dayStart, monthsFrom, orderedMonths, shownMonths } from "./calendar";

it("fills the weeks of a month from Monday", () => {
  const [november] = monthsFrom(2026, 11, 1);
  expect(november?.weeks[0]).toEqual([null, null, null, null, null, null, "2026-11-01"]);
  expect(november?.weeks.at(-1)).toEqual(["2026-11-30", null, null, null, null, null, null]);
  expect(monthsFrom(2024, 2, 1)[0]?.weeks.flat().filter(Boolean)).toHaveLength(29);
});

it("goes over the end of a year", () => {
  expect(monthsFrom(2025, 11, 3).map((one) => one.id)).toEqual(["2025-11", "2025-12", "2026-01"]);
  const shown = shownMonths("", "2026-12-31").map((one) => one.id);
  expect([shown[0], shown.at(-1), shown.length]).toEqual(["2026-01", "2027-01", 13]);
  expect(shownMonths("2025", "2026-12-31").map((one) => one.id)).toContain("2025-12");
});

it("shows the newest month first, none before the first run, and no future one without a planned run", () => {
  const months = shownMonths("", "2026-12-31");
  const ids = (first?: string, last?: string) => orderedMonths(months, "", "2026-12-31", first, last).map((one) => one.id);
  expect(ids("2026-11-03", "2027-01-31")).toEqual(["2027-01", "2026-12", "2026-11"]);
  expect(ids("2026-11-03", "2026-11-05")).toEqual(["2026-12", "2026-11"]);
  expect(ids()).toHaveLength(12);
  expect(orderedMonths(shownMonths("2025", ""), "2025", "2026-12-31", "2025-06-01").map((one) => one.id)[0]).toBe("2025-01");
});

it("knows when a day begins in a zone", () => {
  expect(dayStart("2026-11-22", "UTC")).toBe("2026-11-22T00:00:00.000Z");
  expect(dayStart("2026-11-22", "Asia/Seoul")).toBe("2026-11-21T15:00:00.000Z");
  expect(dayStart("2026-03-29", "Europe/Berlin")).toBe("2026-03-28T23:00:00.000Z");
  expect(dayStart("2026-03-30", "Europe/Berlin")).toBe("2026-03-29T22:00:00.000Z");
  expect(addDays("2026-12-31", 1)).toBe("2027-01-01");
});
