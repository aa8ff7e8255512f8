// Durations and moments as text. Pure: the time zone, the language and the present moment are arguments.

/** Two units at most: `340ms`, `12s`, `3m 12s`, `1h 04m`, `2d 03h`. */
export function durationText(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) seconds = 0;
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`;
  if (seconds < 10 && seconds % 1 >= 0.05) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const two = (value: number): string => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h ${two(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(whole / 86_400)}d ${two(Math.floor((whole % 86_400) / 3600))}h`;
}

/** The seconds of a duration as an API writes it: `PT4H`, `PT14400S`, `P1DT12H`; null: it is none. */
export function isoSeconds(text: string): number | null {
  const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text);
  if (!found || text.endsWith("T") || text === "P") return null;
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = found;
  return Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

/** Seconds between two moments; `end` null: until `now` (milliseconds). */
export function secondsBetween(start: string, end: string | null, now: number): number {
  return Math.max(0, ((end === null ? now : Date.parse(end)) - Date.parse(start)) / 1000);
}

const formats = new Map<string, Intl.DateTimeFormat>();

function parts(moment: number, zone: string): Record<string, string> {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
    });
    formats.set(zone, format);
  }
  return Object.fromEntries(format.formatToParts(moment).map((one) => [one.type, one.value]));
}

/** `2026-11-22 02:00:07`; without the seconds if `precision` is `minute`. */
export function momentText(moment: string | number, zone: string, precision: "second" | "minute" | "day" = "second"): string {
  const { year, month, day, hour, minute, second } = parts(typeof moment === "string" ? Date.parse(moment) : moment, zone);
  const date = `${year}-${month}-${day}`;
  if (precision === "day") return date;
  return `${date} ${hour}:${minute}${precision === "second" ? `:${second}` : ""}`;
}

/** `02:00:07`, of a moment. */
export function clockText(moment: string | number, zone: string): string {
  return momentText(moment, zone).slice(11);
}

// Making a format takes longer than using it, and a table shows hundreds of moments.
const zoneFormats = new Map<string, Intl.DateTimeFormat>();
const relativeFormats = new Map<string, Intl.RelativeTimeFormat>();

/** The short name of a zone at a moment: `UTC`, `CET`, `GMT+8`. */
export function zoneName(zone: string, moment: number): string {
  if (zone === "UTC") return "UTC";
  let format = zoneFormats.get(zone);
  if (!format) zoneFormats.set(zone, (format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "short" })));
  const found = format.formatToParts(moment);
  return found.find((one) => one.type === "timeZoneName")?.value ?? zone;
}

/** `in 5 hours`, `12 minutes ago`, in a language. */
export function relativeText(moment: string, now: number, locale: string): string {
  const seconds = (Date.parse(moment) - now) / 1000;
  const size = Math.abs(seconds);
  let format = relativeFormats.get(locale);
  if (!format) relativeFormats.set(locale, (format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" })));
  if (size < 60) return format.format(Math.round(seconds), "second");
  if (size < 3600) return format.format(Math.round(seconds / 60), "minute");
  if (size < 86_400) return format.format(Math.round(seconds / 3600), "hour");
  return format.format(Math.round(seconds / 86_400), "day");
}

/** Whether a planned moment has passed, so that "5 minutes ago" would be wrong for a start that has not happened. */
export function isDue(planned: string, now: number): boolean {
  return Date.parse(planned) <= now;
}
