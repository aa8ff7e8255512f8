// The lines of a traceback: which of them are in the file itself, and which source line it stopped at. Pure.

export interface TraceLine {
  text: string;
  /** Whether the line names the file itself, or is the source line below such a line. */
  own: boolean;
}

export function tracebackLines(trace: string, filename: string): TraceLine[] {
  let below = false;
  return trace.trimEnd().split("\n").map((text) => {
    const names = /^\s*File "([^"]*)", line \d+/.exec(text);
    if (names) {
      const path = names[1] ?? "";
      below = path === filename || path.endsWith(`/${filename}`);
      return { text, own: below };
    }
    // The source, and the marks under it, are indented deeper than the line that names the file.
    if (!/^\s{4}/.test(text)) below = false;
    return { text, own: below };
  });
}

/** The last source line of the file itself that the traceback shows; empty: it shows none. */
export function sourceLine(lines: readonly TraceLine[]): string {
  let found = "";
  for (let at = 1; at < lines.length; at += 1) {
    const before = lines[at - 1], line = lines[at];
    if (before?.own && /^\s*File "/.test(before.text) && line?.own && !/^\s*File "/.test(line.text)) found = line.text.trim();
  }
  return found;
}

/** The last line that is not empty: the sentence of an error. */
export function lastLine(trace: string): string {
  return trace.trimEnd().split("\n").at(-1) ?? "";
}
