// English texts of the server that were stored, or that say why a request was refused: the page recognises each by its template, and shows
// it in its language. Other texts, such as messages of exceptions, stay as they are.
import type { Phrase, Templates } from "./phrase";

interface Pattern {
  code: string;
  expression: RegExp;
  /** Letters that are not placeholders: of several templates that fit, the one with most of them is meant. */
  fixed: number;
}

const GUESS = / Did you mean '(?<name>.+)'\?$/;
const made = new WeakMap<Templates, readonly Pattern[]>();

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function patternsOf(templates: Templates, states: readonly string[]): readonly Pattern[] {
  const known = made.get(templates);
  if (known) return known;
  const found = Object.entries(templates).map(([code, template]): Pattern => {
    const parts = template.split(/\{(\w+)\}/);
    const source = parts.map((part, at) => (at % 2 === 0 ? escaped(part) : `(?<${part}>${part === "state" ? states.join("|") : ".+"})`)).join("");
    return { code, expression: new RegExp(`^${source}$`, "s"), fixed: parts.reduce((sum, part, at) => sum + (at % 2 === 0 ? part.length : 0), 0) };
  });
  made.set(templates, found);
  return found;
}

/** The phrase of a text; null: no template fits. A reason inside of it is recognised, too. */
export function recognised(text: string, templates: Templates, states: readonly string[]): Phrase | null {
  const guess = GUESS.exec(text);
  if (guess) {
    const first = recognised(text.slice(0, guess.index), templates, states);
    return first && { code: "then", arguments: { first, second: { code: "did_you_mean", arguments: { name: guess.groups?.name ?? "" } } } };
  }
  let best: { pattern: Pattern; values: Record<string, string> } | null = null;
  for (const pattern of patternsOf(templates, states)) {
    const match = pattern.expression.exec(text);
    if (match && pattern.fixed > (best?.pattern.fixed ?? 0)) best = { pattern, values: match.groups ?? {} };
  }
  if (!best) return null;
  const values: Phrase["arguments"] = { ...best.values };
  for (const name of ["reason", "what"]) if (typeof values[name] === "string") values[name] = recognised(values[name], templates, states) ?? values[name];
  return { code: best.pattern.code, arguments: values };
}
