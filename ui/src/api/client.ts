// The typed client of the REST API. Paths, parameters and answers are checked against the OpenAPI document (schema.d.ts).
import createClient from "openapi-fetch";

import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** An answer of the server that is no success. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Id of the request in the log of the API. Empty: the server was not reached. */
    readonly requestId: string,
    /** For 422: field → the reason why its value is refused. */
    readonly fields: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  /** Whether the request may succeed if it is sent again. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Whether the answer says that the object does not exist. */
export function isMissing(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 404;
}

const REQUEST_SECONDS = 60;

/** Sends a request. The first requests of a page were started by boot.js. */
async function send(request: Request): Promise<Response> {
  const address = new URL(request.url);
  const key = address.pathname + address.search;
  const started = request.method === "GET" ? window.tradewindFirst?.[key] : undefined;
  if (started) {
    delete window.tradewindFirst?.[key];
    return started;
  }
  return fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(REQUEST_SECONDS * 1000)]) });
}

export const api = createClient<paths>({
  baseUrl: location.origin,
  credentials: "same-origin",
  headers: { "X-Tradewind-Request": "1" },
  fetch: send,
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a successful answer. Throws ApiError for any other, and leads to the login page for 401. */
export async function read<T>(answer: Promise<Answer<T>>): Promise<T> {
  let found: Answer<T>;
  try {
    found = await answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, error instanceof Error ? error.message : String(error), "");
  }
  if (found.response.ok) return found.data as T;
  if (found.response.status === 401 && location.pathname !== "/login") {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  throw errorOf(found.response, found.error);
}

function errorOf(response: Response, body: unknown): ApiError {
  const detail = typeof body === "object" && body !== null && "detail" in body ? body.detail : body;
  const fields: Record<string, string> = {};
  let text = typeof detail === "string" ? detail : "";
  if (Array.isArray(detail)) {
    for (const one of detail as { loc: (string | number)[]; msg: string }[]) fields[one.loc.slice(1).join(".")] = one.msg;
    text = Object.entries(fields)
      .map(([name, message]) => (name ? `${name}: ${message}` : message))
      .join("; ");
  }
  return new ApiError(response.status, text || `${response.status} ${response.statusText}`, response.headers.get("X-Request-Id") ?? "", fields);
}
