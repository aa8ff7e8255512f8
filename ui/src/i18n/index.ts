// Messages in three languages. `t("grid.title", { n: 3 })` is typed by the English files; `useText()` renders again when the language changes.
import { setupI18n, type Messages } from "@lingui/core";
import { useSyncExternalStore } from "react";
import { messages as english } from "virtual:messages/en";

import type { MessageKey } from "./keys";
import type { Templates } from "./phrase";

export const LANGUAGES = { en: "English", "zh-CN": "简体中文", ko: "한국어" } as const;
export type Language = keyof typeof LANGUAGES;
type Values = Record<string, string | number>;

const i18n = setupI18n({ locale: "en", messages: { en: english } });
const LOADERS: Record<Exclude<Language, "en">, () => Promise<{ messages: Messages; templates: Templates }>> = {
  "zh-CN": () => import("virtual:messages/zh-CN"),
  ko: () => import("virtual:messages/ko"),
};
const STORED = "tradewind.language";
let englishTemplates: Templates = {};

/** The English templates by which texts of the server are recognised. They are loaded with each other language. */
export function templates(): Templates {
  return englishTemplates;
}

function isLanguage(value: string | null): value is Language {
  return value !== null && value in LANGUAGES;
}

/** The chosen language, else the first language of the browser for which there are messages. */
export function wantedLanguage(): Language {
  const stored = localStorage.getItem(STORED);
  if (isLanguage(stored)) return stored;
  for (const one of navigator.languages) {
    if (one.toLowerCase().startsWith("zh")) return "zh-CN";
    if (one.toLowerCase().startsWith("ko")) return "ko";
    if (one.toLowerCase().startsWith("en")) return "en";
  }
  return "en";
}

/** Loads the messages of a language and shows them. Keeps the language for the next visit if `keep`. */
export async function setLanguage(language: Language, keep = true): Promise<void> {
  if (language !== "en") {
    const loaded = await LOADERS[language]();
    i18n.load(language, loaded.messages);
    englishTemplates = loaded.templates;
  }
  i18n.activate(language);
  document.documentElement.lang = language;
  if (keep) localStorage.setItem(STORED, language);
}

/** The message of a key in the language that is shown. */
export function t(key: MessageKey, values?: Values): string {
  return i18n._(key, values);
}

/** The message of a key that is made at run time, or the fallback. For words that the server may extend, such as states. */
export function tOr(key: string, fallback: string, values?: Values): string {
  return key in i18n.messages ? i18n._(key, values) : fallback;
}

export function language(): Language {
  return i18n.locale as Language;
}

const BY_LANGUAGE = new Map<Language, typeof t>();

/** `t`, and the component is rendered again when the language changes. It is another function then, so remembered values are made again. */
export function useText(): typeof t {
  const shown = useLanguage();
  let found = BY_LANGUAGE.get(shown);
  if (!found) BY_LANGUAGE.set(shown, (found = (key, values) => t(key, values)));
  return found;
}

export function useLanguage(): Language {
  return useSyncExternalStore(
    (changed) => i18n.on("change", changed),
    () => i18n.locale as Language,
  );
}

const numberFormats = new Map<Language, Intl.NumberFormat>();

/** A number with the separators of the language. */
export function formatNumber(value: number): string {
  let format = numberFormats.get(language());
  if (!format) numberFormats.set(language(), (format = new Intl.NumberFormat(language())));
  return format.format(value);
}

/** Bytes with a unit: `1.2 MB`. */
export function formatBytes(value: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  const unit = units[step] ?? "byte";
  return new Intl.NumberFormat(language(), { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: step && value < 10 ? 1 : 0 }).format(value);
}
