// The escape sequences that tasks write for colours (ANSI SGR), as styled pieces of text. Pure; everything else that a terminal would
// obey (cursor, links, titles) is removed, and no text ever becomes HTML.

export interface Piece {
  text: string;
  /** 0–15: the colours of a terminal; undefined: the default. */
  colour?: number;
  background?: number;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  underline?: boolean;
}

type Style = Omit<Piece, "text">;

// CSI … letter, OSC … BEL or ST, other two-character sequences, and control characters except tab
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001b\[([0-9;:?<=>]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[PX^_][^\u001b]*(?:\u001b\\|$)|\u001b[@-Z\\-_]?|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g;

/** The text without any sequence. */
export function plainText(text: string): string {
  // eslint-disable-next-line no-control-regex
  return /[\u0000-\u0008\u000b-\u001f\u007f]/.test(text) ? text.replace(SEQUENCE, "") : text;
}

/** The pieces of a line, each with one style. */
export function ansiPieces(text: string): Piece[] {
  const found: Piece[] = [];
  let style: Style = {};
  let place = 0;
  const add = (end: number): void => {
    if (end > place) found.push({ text: text.slice(place, end), ...style });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(match.index);
    place = match.index + match[0].length;
    if (match[2] === "m") style = changed(style, match[1] ?? "");
  }
  add(text.length);
  return found;
}

function changed(style: Style, codes: string): Style {
  const numbers = codes.split(/[;:]/).map((one) => (one === "" ? 0 : Number(one)));
  let next: Style = { ...style };
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next = without(next, "bold", "faint");
    else if (code === 23) next = without(next, "italic");
    else if (code === 24) next = without(next, "underline");
    else if (code >= 30 && code <= 37) next.colour = code - 30;
    else if (code >= 90 && code <= 97) next.colour = code - 82;
    else if (code >= 40 && code <= 47) next.background = code - 40;
    else if (code >= 100 && code <= 107) next.background = code - 92;
    else if (code === 39) next = without(next, "colour");
    else if (code === 49) next = without(next, "background");
    else if (code === 38 || code === 48) {
      const name = code === 38 ? "colour" : "background";
      if (numbers[at + 1] === 5) {
        next[name] = ofPalette(numbers[at + 2] ?? 0);
        at += 2;
      } else if (numbers[at + 1] === 2) {
        next[name] = nearest(numbers[at + 2] ?? 0, numbers[at + 3] ?? 0, numbers[at + 4] ?? 0);
        at += 4;
      }
    }
  }
  return next;
}

function without(style: Style, ...names: (keyof Style)[]): Style {
  return Object.fromEntries(Object.entries(style).filter(([name]) => !names.includes(name as keyof Style)));
}

/** One of 256 colours as one of the 16, whose contrast we know in both themes. */
function ofPalette(code: number): number {
  if (code < 16) return Math.max(0, code);
  if (code >= 232) return nearest(...([8, 8, 8].map((base) => base + (code - 232) * 10) as [number, number, number]));
  const cube = code - 16;
  const level = (step: number): number => (step === 0 ? 0 : 55 + step * 40);
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

/** The terminal colour of about the same hue. */
function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue), least = Math.min(red, green, blue);
  if (most - least < 40) return most < 64 ? 0 : most < 150 ? 8 : most < 220 ? 7 : 15;
  const limit = (most + least) / 2;
  const hue = (red > limit ? 1 : 0) + (green > limit ? 2 : 0) + (blue > limit ? 4 : 0);
  return hue + (most > 200 ? 8 : 0);
}
