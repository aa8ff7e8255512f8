// Why a value was refused, in the language that is shown. The texts of the libraries that check requests and params are recognised by
// refusals.json; `tests/unit/api/test_refused_values.py` compares that table with what the server says. Other texts are those of the server.
import { t, tOr } from ".";
import { STATES } from "../state/states";
import { storedText } from "./phrases";
import templates from "./refusals.json";
import { recognised } from "./stored";

/** Codes of texts that stand only inside of another one. */
const PART = /^param[A-Z]/;

/** The sentence of a value that was refused. A reason inside of it is shown in the same way. */
export function refusedText(text: string): string {
  const found = recognised(text, templates, STATES);
  if (!found || PART.test(found.code)) return storedText(text);
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
