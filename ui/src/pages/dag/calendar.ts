// Months as rows of weeks. Pure; dates are texts: YYYY-MM-DD.

export interface Month {
  /** YYYY-MM */
  id: string;
  /** Weeks from Monday to Sunday; null: a day of another month. */
  weeks: (string | null)[][];
}

const two = (value: number): string => String(value).padStart(2, "0");

/** Months in a row: the first one is `month` (from 1) of `year`. */
export function monthsFrom(year: number, month: number, count: number): Month[] {
  return Array.from({ length: count }, (_, at) => monthOf(year + Math.floor((month - 1 + at) / 12), ((month - 1 + at) % 12) + 1));
}

function monthOf(year: number, month: number): Month {
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const before = (new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 6) % 7;
  const cells: (string | null)[] = Array.from({ length: before }, () => null);
  for (let day = 1; day <= days; day += 1) cells.push(`${year}-${two(month)}-${two(day)}`);
  while (cells.length % 7) cells.push(null);
  return { id: `${year}-${two(month)}`, weeks: Array.from({ length: cells.length / 7 }, (_, at) => cells.slice(at * 7, at * 7 + 7)) };
}

/** The months that a choice shows: a year, or the last eleven months with the present and the next one. */
export function shownMonths(choice: string, today: string): Month[] {
  if (/^\d{4}$/.test(choice)) return monthsFrom(Number(choice), 1, 12);
  const [year = 1970, month = 1] = today.split("-").map(Number);
  return monthsFrom(year - 1, month + 1, 13);
}

/** The newest month first, without the months before the first and after the last day that is known; the present one is there. A year stays as it is. */
export function orderedMonths(months: readonly Month[], choice: string, today: string, first?: string, last?: string): readonly Month[] {
  if (/^\d{4}$/.test(choice)) return months;
  const present = today.slice(0, 7), from = first?.slice(0, 7) ?? "", until = last?.slice(0, 7) ?? "";
  return months.filter((one) => one.id >= from && one.id <= (until > present ? until : present)).reverse();
}

/** A date some days later. */
export function addDays(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

/** The moment at which a day begins in a zone, ISO 8601. */
export function dayStart(date: string, zone: string): string {
  const guess = Date.parse(`${date}T00:00:00Z`);
  const first = guess - offsetAt(guess, zone);
  return new Date(guess - offsetAt(first, zone)).toISOString();
}

/** How far a zone is ahead of UTC at a moment, milliseconds. */
function offsetAt(moment: number, zone: string): number {
  const parts = Object.fromEntries(
    new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" })
      .formatToParts(moment).map((one) => [one.type, Number(one.value)]),
  ) as Record<"year" | "month" | "day" | "hour" | "minute" | "second", number>;
  return Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second) - Math.floor(moment / 1000) * 1000;
}
