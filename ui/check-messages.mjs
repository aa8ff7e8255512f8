// Compares the messages of all languages: the same files, keys and placeholders as in English, and nothing left in English.
import { readdirSync, readFileSync } from "node:fs";

import { compileMessage } from "@lingui/message-utils/compileMessage";

const folder = new URL("./messages/", import.meta.url);
// Words that are the same in all languages: names of products, of states as Airflow writes them, and of formats.
const SAME = /^[\s\d\p{P}\p{S}]*(Tradewind|DAG|DAGs|XCom|XComs|JSON|UTC|ID|URI|URL|Cron|cron|curl|SLA|OIDC|Gantt|AM|PM|API|CSV|HTTP|IP|CPU|PID|conf|v|ms|s|m|h|d|\{[^{}]*\}|[\s\d\p{P}\p{S}])*$/u;
const problems = [];

function read(language) {
  const found = new Map();
  for (const name of readdirSync(new URL(`${language}/`, folder)).filter((one) => one.endsWith(".json"))) {
    for (const [key, text] of Object.entries(JSON.parse(readFileSync(new URL(`${language}/${name}`, folder), "utf8")))) {
      found.set(`${name.slice(0, -5)}.${key}`, text);
    }
  }
  return found;
}

/** The names of the placeholders of a compiled message, with those inside plurals. */
function placeholders(tokens, names = new Set()) {
  for (const token of Array.isArray(tokens) ? tokens : []) {
    if (!Array.isArray(token)) continue;
    names.add(token[0]);
    if (token[2] && typeof token[2] === "object") Object.values(token[2]).forEach((choice) => placeholders(choice, names));
  }
  return names;
}

const english = read("en");
for (const language of readdirSync(folder)) {
  if (language === "en") continue;
  const translated = read(language);
  for (const [key, text] of english) {
    const other = translated.get(key);
    if (other === undefined) problems.push(`${language}: ${key} is missing`);
    else {
      const wanted = [...placeholders(compileMessage(text))].sort().join(), given = [...placeholders(compileMessage(other))].sort().join();
      if (wanted !== given) problems.push(`${language}: ${key} has the placeholders (${given}), English has (${wanted})`);
      if (other === text && !SAME.test(text)) problems.push(`${language}: ${key} is not translated: ${text}`);
    }
  }
  for (const key of translated.keys()) if (!english.has(key)) problems.push(`${language}: ${key} does not exist in English`);
}
if (problems.length) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`${english.size} messages in ${readdirSync(folder).length} languages`);
