// The whole log of a try as a text file. It is read as a stream; the browser keeps it on disk.
import { ApiError } from "../../api/client";
import { plainText } from "./ansi";

export interface LogOf {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
  tryNumber: number;
}

export function logPath({ dagId, runId, taskId, mapIndex, tryNumber }: LogOf): string {
  const e = encodeURIComponent;
  return `/api/v2/dags/${e(dagId)}/dagRuns/${e(runId)}/taskInstances/${e(taskId)}/logs/${tryNumber}${mapIndex >= 0 ? `?map_index=${mapIndex}` : ""}`;
}

/** A record of the log as a line of text. */
export function recordText(line: string): string {
  try {
    const record = JSON.parse(line) as { timestamp?: unknown; level?: unknown; event?: unknown };
    const text = typeof record.event === "string" ? record.event : line;
    const before = [record.timestamp, record.level].filter((one): one is string => typeof one === "string");
    return [...before, plainTextOfLines(text)].join(" ");
  } catch {
    return line;
  }
}

function plainTextOfLines(text: string): string {
  return text.split("\n").map(plainText).join("\n");
}

export async function downloadLog(log: LogOf): Promise<void> {
  const answer = await fetch(logPath(log), { credentials: "same-origin", headers: { Accept: "application/x-ndjson" } });
  if (!answer.ok || !answer.body) throw new ApiError(answer.status, `${answer.status} ${answer.statusText}`, answer.headers.get("X-Request-Id") ?? "");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const parts: Blob[] = [];
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    if (lines.length) parts.push(new Blob([lines.map(recordText).join("\n"), "\n"]));
  }
  if (rest) parts.push(new Blob([recordText(rest), "\n"]));
  const address = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `${[log.dagId, log.taskId, log.mapIndex >= 0 ? String(log.mapIndex) : "", `try${log.tryNumber}`].filter(Boolean).join(".").replace(/[^\w.-]+/g, "_").slice(0, 120)}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
