// The rows of a log: lines with their folds, filtered by level, and their places. Pure.
//
// A record of the log may have several lines (a traceback); each becomes a row. A row is named by the byte offset of its record, which
// never changes, and by its number inside the record.
import { plainText } from "./ansi";

export interface LogPiece {
  size: number;
  start: number;
  end: number;
  grows: boolean;
  first_error: number | null;
  searched: boolean;
  offsets: number[];
  times: (string | null)[];
  levels: (string | null)[];
  loggers: (string | null)[];
  texts: string[];
  notice: string | null;
}

export interface LogLine {
  offset: number;
  /** 0: the first line of its record. */
  part: number;
  time: string | null;
  level: string | null;
  logger: string | null;
  /** With escape sequences, at most `TEXT_MAX` characters. */
  text: string;
  plain: string;
  /** Characters that were cut off at the end. */
  more: number;
  /** Columns of a fixed-width font. */
  cells: number;
}

export const LINE_HEIGHT = 18;
export const TEXT_MAX = 10_000;
export const LEVELS = ["debug", "info", "warning", "error"] as const;
export type Level = (typeof LEVELS)[number];
const RANKS: Readonly<Record<string, number>> = { trace: 0, notset: 0, debug: 0, info: 1, warning: 2, warn: 2, error: 3, critical: 3, exception: 3, fatal: 3 };

export function rankOf(level: string | null): number {
  return level === null ? 1 : (RANKS[level.toLowerCase()] ?? 1);
}

export function isError(line: LogLine): boolean {
  return rankOf(line.level) >= 3;
}

/** How many columns a text takes: wide characters (Chinese, Korean, most pictures) take two. */
export function cellsOf(text: string): number {
  // eslint-disable-next-line no-control-regex
  if (/^[\u0000-\u02ff]*$/.test(text)) return text.length;
  let cells = 0;
  for (const one of text) {
    const code = one.codePointAt(0) ?? 0;
    const wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3)
      || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) || (code >= 0x1f300 && code <= 0x3fffd);
    cells += wide ? 2 : 1;
  }
  return cells;
}

/** The lines of a piece of the log. */
export function linesOf(piece: LogPiece): LogLine[] {
  const found: LogLine[] = [];
  piece.texts.forEach((whole, at) => {
    const texts = whole.includes("\n") ? whole.replace(/\n$/, "").split("\n") : [whole];
    texts.forEach((one, part) => {
      const shown = (one.length > TEXT_MAX ? one.slice(0, TEXT_MAX) : one).replaceAll("\t", "    ");
      const plain = plainText(shown);
      found.push({
        offset: piece.offsets[at] ?? 0, part, time: piece.times[at] ?? null, level: piece.levels[at] ?? null, logger: piece.loggers[at] ?? null,
        text: shown, plain, more: Math.max(0, one.length - TEXT_MAX), cells: cellsOf(plain),
      });
    });
  });
  return found;
}

export interface LogRow {
  /** Index in the lines. */
  at: number;
  /** Set for the title of a group. */
  group?: { title: string; open: boolean; lines: number };
  /** How deep inside groups. */
  depth: number;
}

const GROUP = /^\s*(?:::|##\[)group(?:::|\])(.*)$/;
const END = /^\s*(?:::endgroup::|##\[endgroup\])/;

/**
 * The rows to show. A group is closed unless it was opened, or has an error, or has a line of `reveal`.
 *
 * folds: offset of a group's title → open. reveal: offsets of lines that must be seen.
 */
export function rowsOf(lines: readonly LogLine[], least: number, folds: ReadonlyMap<number, boolean>, reveal: ReadonlySet<number>): LogRow[] {
  const groups = findGroups(lines, reveal);
  const rows: LogRow[] = [];
  const ends: { end: number }[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as LogLine;
    while (ends.length && (ends.at(-1)?.end ?? 0) <= at) ends.pop();
    const group = groups.get(at);
    if (group) {
      const open = folds.get(line.offset) ?? group.urgent;
      rows.push({ at, depth: ends.length, group: { title: group.title, open, lines: group.end - at - 1 } });
      if (open) ends.push({ end: group.end });
      else at = group.end - 1 + (group.closed ? 1 : 0);
      continue;
    }
    if (END.test(line.plain)) continue;
    if (rankOf(line.level) >= least) rows.push({ at, depth: ends.length });
  }
  return rows;
}

interface Group {
  title: string;
  /** The index of its end line, or of the end of all lines. */
  end: number;
  closed: boolean;
  urgent: boolean;
}

function findGroups(lines: readonly LogLine[], reveal: ReadonlySet<number>): Map<number, Group> {
  const found = new Map<number, Group>();
  const open: number[] = [];
  lines.forEach((line, at) => {
    if (line.part === 0 && line.plain.includes("group")) {
      const title = GROUP.exec(line.plain)?.[1];
      if (title !== undefined) {
        open.push(at);
        found.set(at, { title: title.trim() || "…", end: lines.length, closed: false, urgent: false });
        return;
      }
      if (END.test(line.plain)) {
        const group = found.get(open.pop() ?? -1);
        if (group) {
          group.end = at;
          group.closed = true;
        }
        return;
      }
    }
    if (open.length && (isError(line) || reveal.has(line.offset))) for (const one of open) (found.get(one) as Group).urgent = true;
  });
  return found;
}

/** The places of rows, pixels: row i is from `tops[i]` to `tops[i + 1]`. `columns`: how many fit in a line; 0: lines are not wrapped. */
export function topsOf(rows: readonly LogRow[], lines: readonly LogLine[], columns: number): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at] as LogRow;
    const room = Math.max(10, columns - row.depth * 2);
    const height = columns === 0 || row.group ? 1 : Math.max(1, Math.ceil((lines[row.at] as LogLine).cells / room));
    tops[at + 1] = (tops[at] ?? 0) + height * LINE_HEIGHT;
  }
  return tops;
}

/** The row at a position in pixels. */
export function rowAt(tops: Float64Array, place: number): number {
  let low = 0, high = tops.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((tops[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/** The row of a line, or the next one that is shown; -1: there are no rows. */
export function rowOfOffset(rows: readonly LogRow[], lines: readonly LogLine[], offset: number, part = 0): number {
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const line = lines[(rows[middle] as LogRow).at] as LogLine;
    if (line.offset < offset || (line.offset === offset && line.part < part)) low = middle + 1;
    else high = middle;
  }
  return rows.length ? low : -1;
}

/** Where a text occurs in a line: start and end of each place. Lower and upper case are the same. */
export function hitsIn(plain: string, text: string): [number, number][] {
  const found: [number, number][] = [];
  if (!text) return found;
  const where = plain.toLowerCase(), what = text.toLowerCase();
  for (let at = where.indexOf(what); at >= 0 && found.length < 500; at = where.indexOf(what, at + what.length)) found.push([at, at + what.length]);
  return found;
}
