// Days of a time zone as moments. Pure.
import { momentText } from "../../time/format";

const DAY_MS = 86_400_000;

/** The moment at which a day (YYYY-MM-DD) begins in a zone, as ISO 8601 in UTC; undefined: it is no day. */
export function dayStart(day: string, zone: string): string | undefined {
  const guess = Date.parse(`${day}T00:00:00Z`);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || Number.isNaN(guess)) return undefined;
  let found = guess;
  // The second round corrects a change of the zone's offset between the guess and the day's begin.
  for (let round = 0; round < 2; round += 1) found = guess - (Date.parse(`${momentText(found, zone).replace(" ", "T")}Z`) - found);
  return new Date(found).toISOString();
}

/** The day after. */
export function nextDay(day: string): string {
  const start = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(start) ? day : new Date(start + DAY_MS).toISOString().slice(0, 10);
}
