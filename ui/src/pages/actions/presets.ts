// Named values of the trigger form. They are kept in this browser, for each DAG.
export interface Preset {
  name: string;
  conf: Record<string, unknown>;
}

const STORED = "tradewind.presets.";
/** Presets of one DAG; the oldest is forgotten first. */
export const PRESETS_MAX = 20;
export const NAME_MAX = 60;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The presets in a stored text, in the order in which they were saved. What is no preset is left out. */
export function parsePresets(text: string | null): Preset[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(found)) return [];
    return found.flatMap((one: unknown) => (isObject(one) && typeof one.name === "string" && one.name && isObject(one.conf) ? [{ name: one.name, conf: one.conf }] : []));
  } catch {
    return [];
  }
}

/** With this preset at the end, in place of one of the same name. */
export function withPreset(presets: readonly Preset[], preset: Preset): Preset[] {
  return [...presets.filter((one) => one.name !== preset.name), preset].slice(-PRESETS_MAX);
}

export function readPresets(dagId: string): Preset[] {
  return parsePresets(localStorage.getItem(STORED + dagId));
}

/** Keeps the presets. Throws DOMException: the browser has no room, or forbids it. */
export function keepPresets(dagId: string, presets: readonly Preset[]): void {
  if (presets.length) localStorage.setItem(STORED + dagId, JSON.stringify(presets));
  else localStorage.removeItem(STORED + dagId);
}
