// The form fields of a question, from the JSON schemas of its params. Pure.

export interface Field {
  name: string;
  title: string;
  description: string;
  kind: "text" | "number" | "boolean" | "choice" | "json";
  choices: readonly string[];
  value: string;
  min: number | undefined;
  max: number | undefined;
}

interface Param {
  value?: unknown;
  description?: string | null;
  schema?: { type?: string | string[]; title?: string; enum?: unknown[]; minimum?: number; maximum?: number } | null;
}

function kindOf(param: Param): Field["kind"] {
  const type = Array.isArray(param.schema?.type) ? param.schema.type.find((one) => one !== "null") : param.schema?.type;
  if (param.schema?.enum?.every((one) => typeof one === "string")) return "choice";
  if (type === "integer" || type === "number" || typeof param.value === "number") return "number";
  if (type === "boolean" || typeof param.value === "boolean") return "boolean";
  if (type === "string" || typeof param.value === "string" || (type === undefined && (param.value === null || param.value === undefined))) return "text";
  return "json";
}

export function fieldsOf(params: Readonly<Record<string, unknown>>): Field[] {
  return Object.entries(params).map(([name, given]) => {
    const param: Param = typeof given === "object" && given !== null && "value" in given ? given : { value: given };
    const kind = kindOf(param);
    const value = kind === "json" ? JSON.stringify(param.value ?? null) : param.value === null || param.value === undefined ? "" : (param.value as string | number | boolean).toString();
    return {
      name, kind, value, title: param.schema?.title ?? name, description: param.description ?? "", choices: (param.schema?.enum ?? []).map(String),
      min: param.schema?.minimum, max: param.schema?.maximum,
    };
  });
}

/** The values to send, and the name of the first field whose text does not fit. */
export function inputOf(fields: readonly Field[], values: Readonly<Record<string, string>>): { input: Record<string, unknown>; wrong: string } {
  const input: Record<string, unknown> = {};
  let wrong = "";
  for (const { name, kind, min, max } of fields) {
    const text = values[name] ?? "";
    if (kind === "number") {
      const number = Number(text);
      if (text.trim() === "" || Number.isNaN(number) || (min !== undefined && number < min) || (max !== undefined && number > max)) wrong ||= name;
      else input[name] = number;
    } else if (kind === "boolean") input[name] = text === "true";
    else if (kind === "json") {
      try {
        input[name] = JSON.parse(text) as unknown;
      } catch {
        wrong ||= name;
      }
    } else input[name] = text;
  }
  return { input, wrong };
}
