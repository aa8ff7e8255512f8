// Params of a DAG as fields of a form. Pure. A param is a value with a JSON schema; the field is chosen from its type and format.

export interface Param {
  value: unknown;
  description: string | null;
  schema: ParamSchema;
}

export interface ParamSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  description_md?: string;
  format?: string;
  enum?: unknown[];
  examples?: unknown[];
  values_display?: Record<string, string>;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  section?: string;
  const?: unknown;
}

export type FieldKind = "text" | "lines" | "number" | "boolean" | "choice" | "choices" | "date" | "date-time" | "time" | "json" | "fixed";

export interface Field {
  name: string;
  kind: FieldKind;
  title: string;
  help: string;
  section: string;
  required: boolean;
  schema: ParamSchema;
}

function typesOf(schema: ParamSchema): string[] {
  return schema.type === undefined ? [] : Array.isArray(schema.type) ? schema.type : [schema.type];
}

export function fieldOf(name: string, { value, description, schema }: Param): Field {
  const types = typesOf(schema);
  return {
    name, schema, kind: kindOf(schema, types, value), title: schema.title ?? name, help: schema.description ?? description ?? schema.description_md ?? "", section: schema.section ?? "",
    required: types.length > 0 && !types.includes("null"),
  };
}

function kindOf(schema: ParamSchema, types: string[], value: unknown): FieldKind {
  if (schema.const !== undefined) return "fixed";
  if (schema.enum) return "choice";
  const has = (type: string): boolean => types.includes(type);
  if (has("array") && schema.examples) return "choices";
  if (has("boolean") || (!types.length && typeof value === "boolean")) return "boolean";
  if (has("integer") || has("number") || (!types.length && typeof value === "number")) return has("string") ? "text" : "number";
  if (has("string") || (!types.length && (typeof value === "string" || value === null))) {
    if (schema.format === "date" || schema.format === "date-time" || schema.format === "time") return schema.format;
    return schema.format === "multiline" ? "lines" : "text";
  }
  return "json";
}

/** The text in a field for a value. */
export function textOf(kind: FieldKind, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (kind === "json" || kind === "choices" || kind === "fixed") return JSON.stringify(value, null, 1);
  if (kind === "date-time" && typeof value === "string") return value.slice(0, 16);
  return typeof value === "string" ? value : JSON.stringify(value);
}

export type Parsed = { ok: true; value: unknown } | { ok: false; problem: "json" | "number" };

/** The value of a text in a field. An empty text is null, unless the field must have a text. */
export function valueOf(field: Field, text: string): Parsed {
  if (field.kind === "fixed") return { ok: true, value: field.schema.const };
  if (text === "" && !(field.kind === "text" && field.required)) return { ok: true, value: null };
  if (field.kind === "number") {
    const value = Number(text);
    return Number.isFinite(value) ? { ok: true, value } : { ok: false, problem: "number" };
  }
  if (field.kind === "date-time") return { ok: true, value: text.length === 16 ? `${text}:00+00:00` : text };
  if (field.kind === "boolean") return { ok: true, value: text === "true" };
  if (field.kind === "json" || field.kind === "choices") {
    try {
      return { ok: true, value: JSON.parse(text) as unknown };
    } catch {
      return { ok: false, problem: "json" };
    }
  }
  return { ok: true, value: text };
}

const EARLIER_MAX = 5;

/** The newest runs with values, each set of values once. `runs`: the newest first. */
export function withValues<T extends { conf?: unknown }>(runs: readonly T[]): (T & { conf: Record<string, unknown> })[] {
  const found = new Map<string, T & { conf: Record<string, unknown> }>();
  for (const one of runs) {
    const { conf } = one;
    if (typeof conf !== "object" || conf === null || Object.keys(conf).length === 0) continue;
    const text = JSON.stringify(conf);
    if (!found.has(text) && found.size < EARLIER_MAX) found.set(text, { ...one, conf: conf as Record<string, unknown> });
  }
  return [...found.values()];
}
