// The states of task instances and runs: words, colours and glyphs. The families of colours are Airflow's; their lightness was chosen so
// that all pairs differ with every kind of colour vision. Size and glyph differ too.
import { tOr } from "../i18n";

export const STATES = [
  "none", "scheduled", "queued", "running", "up_for_retry", "up_for_reschedule", "deferred", "awaiting_input", "restarting",
  "success", "failed", "skipped", "upstream_failed", "removed",
] as const;
export type State = (typeof STATES)[number];

/** The order in legends, counts and filters: states that need attention come first. */
export const BY_URGENCY: readonly State[] = [
  "failed", "upstream_failed", "up_for_retry", "awaiting_input", "running", "restarting", "queued", "scheduled", "up_for_reschedule", "deferred",
  "none", "success", "skipped", "removed",
];

export const UNFINISHED: ReadonlySet<string> = new Set([
  "none", "scheduled", "queued", "running", "up_for_retry", "up_for_reschedule", "deferred", "awaiting_input", "restarting",
]);

const WHITE_INK: ReadonlySet<string> = new Set(["queued", "deferred", "success", "failed"]);

export function isState(value: string): value is State {
  return (STATES as readonly string[]).includes(value);
}

/** The state that a name of the server means; an unknown one is shown as `none`. */
export function stateOf(value: string | null | undefined): State {
  if (!value) return "none";
  return isState(value) ? value : value === "shutdown" ? "restarting" : "none";
}

/** The word of a state in the language that is shown. Airflow's own word is in the title of each icon. */
export function stateWord(state: string | null | undefined): string {
  const name = state ?? "none";
  return tOr(`state.${name}`, name);
}

/** The word of a type of runs, such as `manual`, in the language that is shown. */
export function runTypeWord(type: string): string {
  return tOr(`runs.type_${type}`, type);
}

export function stateColour(state: State): string {
  return state === "none" ? "transparent" : `var(--state-${state})`;
}

export function stateInk(state: State): string {
  if (state === "removed" || state === "none") return "var(--removed-ink)";
  return WHITE_INK.has(state) ? "var(--ink-white)" : "var(--ink-dark)";
}

/** The glyph as SVG paths in a square of 16, drawn with a stroke of 2; `fill`: filled instead. */
export const GLYPHS: Readonly<Record<State, { d: string; fill?: boolean }>> = {
  none: { d: "" },
  scheduled: { d: "M8 4.2V8l2.6 1.6" },
  queued: { d: "M4.5 7h1.8v2H4.5z M7.1 7h1.8v2H7.1z M9.7 7h1.8v2H9.7z", fill: true },
  running: { d: "M5.8 4.2l6 3.8-6 3.8z", fill: true },
  up_for_retry: { d: "M11.3 5.6A4 4 0 1 0 12 8.3 M11.7 3.2v2.7H9" },
  up_for_reschedule: { d: "M4 9.5a4 4 0 0 1 8 0" },
  deferred: { d: "M6.2 4.7v6.6 M9.8 4.7v6.6" },
  awaiting_input: { d: "M6 6.3a2 2 0 1 1 2.8 1.9c-.6.3-.8.6-.8 1.3 M8 11.7v.3" },
  restarting: { d: "M4.5 8.5v3h7v-7h-5 M8.3 2.6L6.3 4.5l2 1.9" },
  success: { d: "M4.5 8.3l2.4 2.4 4.6-5" },
  failed: { d: "M5 5l6 6 M11 5l-6 6" },
  skipped: { d: "M4.8 4.8L8 8l-3.2 3.2 M8.6 4.8L11.8 8l-3.2 3.2" },
  upstream_failed: { d: "M8 12V4.6 M4.9 7.5L8 4.4l3.1 3.1" },
  removed: { d: "M5 8h6" },
};
