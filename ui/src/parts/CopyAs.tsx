// "Copy as command" and "copy as curl" beside each action: the page teaches the command line and the API.
import { Copy, SquareTerminal, Terminal } from "lucide-react";

import { t, useText } from "../i18n";
import { Button } from "./Button";
import { Menu } from "./Menu";
import { toast, toastError } from "./toast";

export interface CopyableAction {
  /** A command line: `tradewind dags trigger hello`. */
  command?: string | undefined;
  method: string;
  path: string;
  body?: unknown;
}

/** A word for a POSIX shell. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command line of words. */
export function commandLine(...words: (string | false | null | undefined)[]): string {
  return words.filter((one): one is string => typeof one === "string" && one !== "").map(shellWord).join(" ");
}

export function curlText({ method, path, body }: CopyableAction, origin: string): string {
  const lines = [`curl -X ${method} ${shellWord(origin + path)}`, `-H "Authorization: Bearer $TOKEN"`];
  if (body !== undefined) lines.push(`-H 'Content-Type: application/json'`, `-d ${shellWord(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("common.copied"));
  } catch (error) {
    toastError(error);
  }
}

export function CopyAs({ action, compact = false }: { action: CopyableAction; compact?: boolean }) {
  useText();
  const entries = [
    ...(action.command ? [{ id: "command", label: t("common.copyCommand"), icon: <Terminal size={14} />, onAction: () => void copyText(action.command ?? "") }] : []),
    { id: "curl", label: t("common.copyCurl"), icon: <Copy size={14} />, onAction: () => void copyText(curlText(action, location.origin)) },
  ];
  return (
    <Menu label={t("common.copyAs")} entries={entries}>
      <Button look="quiet" icon compact={compact} label={t("common.copyAs")}>
        <SquareTerminal size={14} />
      </Button>
    </Menu>
  );
}
