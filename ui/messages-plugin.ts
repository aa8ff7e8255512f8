// Compiles the messages of one language when the page is built: `virtual:messages/en` holds all files of messages/en/.
// The parser of ICU messages therefore stays out of the page. The English phrases stay out, too: the server sends its sentences in English.
// The other languages get the English templates of texts that the server stores or sends without a phrase, to recognise them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { compileMessage } from "@lingui/message-utils/compileMessage";
import type { Plugin } from "vite";

const PREFIX = "virtual:messages/";
const STORED = /^(cause|error|run_reason|warnings?)_|^(gone|no_dag|branch_not_chosen|date_before_task|date_after_task)$/;

function templates(folder: string): Record<string, string> {
  const phrases = JSON.parse(readFileSync(join(folder, "en", "phrases.json"), "utf8")) as Record<string, string>;
  return Object.fromEntries(Object.entries(phrases).filter(([code]) => STORED.test(code)).map(([code, text]) => [code, text.replaceAll("''", "'")]));
}

export function messagesPlugin(folder: string): Plugin {
  return {
    name: "tradewind-messages",
    resolveId(id) {
      return id.startsWith(PREFIX) ? `\0${id}` : null;
    },
    load(id) {
      if (!id.startsWith(`\0${PREFIX}`)) return null;
      const language = join(folder, id.slice(PREFIX.length + 1));
      const compiled: Record<string, unknown> = {};
      for (const name of readdirSync(language).filter((one) => one.endsWith(".json") && !(one === "phrases.json" && id.endsWith("/en"))).sort()) {
        const file = join(language, name);
        this.addWatchFile(file);
        const messages = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
        for (const [key, message] of Object.entries(messages)) compiled[`${name.slice(0, -5)}.${key}`] = compileMessage(message);
      }
      const english = id.endsWith("/en") ? {} : templates(folder);
      return [["messages", compiled], ["templates", english]].map(([name, value]) => `export const ${name as string} = JSON.parse(${JSON.stringify(JSON.stringify(value))});`).join("\n");
    },
  };
}
