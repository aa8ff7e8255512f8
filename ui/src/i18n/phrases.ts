// Sentences of the server in the language that is shown. A phrase is a code and its arguments; the messages `phrases.<code>` have the same
// placeholders as the English templates of the server. English, and a code without a message, is the server's own sentence.
import { language, templates, tOr } from ".";
import { STATES } from "../state/states";
import type { Phrase } from "./phrase";
import { recognised } from "./stored";

export type { Phrase } from "./phrase";

type Argument = Phrase["arguments"][string];
/** The message of a code with these values; null: there is none. */
export type Messages = (code: string, values: Record<string, string | number>) => string | null;

/** A phrase with the messages and words of a language; null: a code, also of a part, has no message. */
export function rendered(value: Phrase, messages: Messages, stateWord: (state: string) => string, comma: string): string | null {
  const shown = (one: Argument, name: string): string | null => {
    if (Array.isArray(one)) {
      const parts = one.map((part) => shown(part, name));
      return parts.some((part) => part === null) ? null : parts.join(comma);
    }
    if (typeof one === "object") return rendered(one, messages, stateWord, comma);
    return name === "state" || name.endsWith("_state") ? stateWord(String(one)) : String(one);
  };
  const values: Record<string, string> = {};
  for (const [name, one] of Object.entries(value.arguments)) {
    const text = shown(one, name);
    if (text === null) return null;
    values[name] = text;
  }
  return messages(value.code, values);
}

/** A phrase of the server; `english` is its own sentence. */
export function phraseText(phrase: Phrase | null | undefined, english: string): string {
  const shown = language();
  if (!phrase || shown === "en") return english;
  const messages: Messages = (code, values) => tOr(`phrases.${code}`, "", values) || null;
  return rendered(phrase, messages, (state) => tOr(`state.${state}`, state), shown === "zh-CN" ? "、" : ", ") ?? english;
}

/** An English text of the server that it has sent without a phrase: a reason that was stored, or why a request was refused. */
export function storedText(text: string): string {
  if (language() === "en") return text;
  return phraseText(recognised(text, templates(), STATES), text);
}

/** A schedule in words, without a full stop, and without its zone if the page shows that beside it; null: its cron expression cannot be read. */
export function scheduleText(of: { schedule_text: string | null; schedule_phrase: Phrase | null }, shownZone?: string): string | null {
  if (of.schedule_text === null) return null;
  const text = of.schedule_text.replace(/\.$/, "");
  const { code, arguments: parts } = of.schedule_phrase ?? { code: "", arguments: {} };
  if (code === "schedule_in_zone" && parts.zone === shownZone && typeof parts.times === "object" && "code" in parts.times) {
    return phraseText(parts.times, text.replace(` (${shownZone})`, ""));
  }
  return phraseText(of.schedule_phrase, text);
}
