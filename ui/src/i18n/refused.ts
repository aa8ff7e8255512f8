// Why a value was refused, in the language that is shown. The texts of the libraries that check requests and params are recognised by
// refusals.json; `tests/unit/api/test_refused_values.py` compares that table with what the server says. Other texts are those of the server.
import { t, tOr } from ".";
import { STATES } from "../state/states";
import type { Phrase } from "./phrase";
import { storedText } from "./phrases";
import templates from "./refusals.json";
import { recognised } from "./stored";

/** Codes of texts that stand only inside of another one. */
const PART = /^param[A-Z]/;
const WHOLE = Object.fromEntries(Object.entries(templates).filter(([code]) => !PART.test(code)));

/** A text of refusals.json as a phrase, with the reason inside of it; null: it is none of them. */
export function refusal(text: string): Phrase | null {
  const found = recognised(text, WHOLE, STATES);
  const reason = found?.arguments.reason;
  if (!found || typeof reason !== "string") return found;
  return { ...found, arguments: { ...found.arguments, reason: recognised(reason, templates, STATES) ?? reason } };
}

/** The sentence of a value that was refused. */
export function refusedText(text: string): string {
  const found = refusal(text);
  if (!found) return storedText(text);
  const values: Record<string, string> = {};
  for (const [name, one] of Object.entries(found.arguments)) {
    if (typeof one === "object" && "code" in one) values[name] = tOr(`refused.${one.code}`, "", one.arguments as Record<string, string>);
    else if (typeof one === "string") values[name] = name === "reason" ? storedText(one) : one;
  }
  return tOr(`refused.${found.code}`, text, values);
}

/** The reasons of several fields as one text. */
export function refusedFields(fields: Readonly<Record<string, string>>): string {
  return Object.entries(fields).map(([name, text]) => (name ? t("common.fieldRefused", { name, text: refusedText(text) }) : refusedText(text))).join(" ");
}
