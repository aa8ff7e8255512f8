// Documentation of a DAG as blocks and spans: headings, lists, tables, code, bold text and links of Markdown. Pure; never HTML.

export type Span = { kind: "text" | "code" | "bold" | "italic"; text: string } | { kind: "link"; text: string; href: string };
export type Block =
  | { kind: "heading"; level: number; spans: Span[] }
  | { kind: "text"; spans: Span[] }
  | { kind: "list"; ordered: boolean; items: Span[][] }
  | { kind: "table"; head: Span[][]; rows: Span[][][] }
  | { kind: "code"; text: string };

const SPAN = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\*([^*\n]+)\*|\[([^\]\n]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>)]+)/;
/** Longer texts are shown as plain text. */
const PARSED_MAX = 100_000;

/** The spans of a line. Only web and mail addresses become links. */
export function spansOf(line: string): Span[] {
  const found: Span[] = [];
  let rest = line;
  for (;;) {
    const match = SPAN.exec(rest);
    if (!match) break;
    if (match.index) found.push({ kind: "text", text: rest.slice(0, match.index) });
    const [whole, code, bold, strong, italic, name, href, bare] = match;
    const address = href ?? bare;
    if (code !== undefined) found.push({ kind: "code", text: code });
    else if (bold !== undefined || strong !== undefined) found.push({ kind: "bold", text: bold ?? strong ?? "" });
    else if (italic !== undefined) found.push({ kind: "italic", text: italic });
    else if (address !== undefined && /^(https?:\/\/|mailto:)/i.test(address)) found.push({ kind: "link", text: name ?? address, href: address });
    else found.push({ kind: "text", text: whole });
    rest = rest.slice(match.index + whole.length);
  }
  if (rest) found.push({ kind: "text", text: rest });
  return found;
}

export function blocksOf(text: string): Block[] {
  if (text.length > PARSED_MAX) return [{ kind: "code", text }];
  const found: Block[] = [];
  const lines = withoutIndent(text.split(/\r?\n/));
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (!line.trim()) at += 1;
    else if (line.startsWith("```")) {
      const end = lines.findIndex((one, place) => place > at && one.startsWith("```"));
      const last = end < 0 ? lines.length : end;
      found.push({ kind: "code", text: lines.slice(at + 1, last).join("\n") });
      at = last + 1;
    } else if (heading) {
      found.push({ kind: "heading", level: heading[1]?.length ?? 1, spans: spansOf(heading[2] ?? "") });
      at += 1;
    } else if (startsTable(lines, at)) {
      const rows: Span[][][] = [];
      const head = cellsOf(line);
      for (at += 2; (lines[at] ?? "").includes("|"); at += 1) rows.push(cellsOf(lines[at] ?? ""));
      found.push({ kind: "table", head, rows });
    } else if (ITEM.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items: Span[][] = [];
      while (at < lines.length && ITEM.test(lines[at] ?? "")) items.push(spansOf((lines[at++] ?? "").replace(ITEM, "")));
      found.push({ kind: "list", ordered, items });
    } else {
      const start = at;
      while (at < lines.length && (lines[at] ?? "").trim() && !(lines[at] ?? "").startsWith("```") && !/^#{1,6}\s/.test(lines[at] ?? "") && (at === start || (!ITEM.test(lines[at] ?? "") && !startsTable(lines, at)))) at += 1;
      found.push({ kind: "text", spans: spansOf(lines.slice(start, at).map((one) => one.trim()).join(" ")) });
    }
  }
  return found;
}

/** A line of names, then a line of dashes with as many columns. */
function startsTable(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "", rule = lines[at + 1] ?? "";
  return line.includes("|") && rule.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(rule) && cellsOf(line).length === cellsOf(rule).length;
}

function cellsOf(line: string): Span[][] {
  const cells = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/);
  return cells.map((one) => spansOf(one.trim().replaceAll("\\|", "|")));
}

const ITEM = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/;

/** Removes the indentation that all lines of a docstring share. */
function withoutIndent(lines: string[]): string[] {
  const depths = lines.slice(1).filter((one) => one.trim()).map((one) => one.length - one.trimStart().length);
  const least = depths.length ? Math.min(...depths) : 0;
  return lines.map((one, at) => (at === 0 ? one.trimStart() : one.slice(least)));
}
