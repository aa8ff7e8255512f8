import { describe, expect, it } from "vitest";

import { rendered, type Messages } from "./phrases";

const TEMPLATES: Record<string, string> = { waits: "等待 {tasks}。", in_state: "{task}（{state}）", then: "{first}{second}", others: "{items} 等", full: "已用 {used} 个" };
const messages: Messages = (code, values) => TEMPLATES[code]?.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name])) ?? null;
const word = (state: string): string => (state === "failed" ? "失败" : state);
const failed = (task: string) => ({ code: "in_state", arguments: { task, state: "failed" } });

describe("a phrase", () => {
  it("is rendered with its parts, lists and states", () => {
    const tasks = { code: "others", arguments: { items: [failed("a"), "failed"] } };
    const first = { code: "waits", arguments: { tasks } };
    expect(rendered({ code: "then", arguments: { first, second: { code: "full", arguments: { used: 3 } } } }, messages, word, "、")).toBe("等待 a（失败）、failed 等。已用 3 个");
  });
  it("with an unknown part is not rendered", () => {
    expect(rendered({ code: "waits", arguments: { tasks: [failed("a"), { code: "of_a_newer_server", arguments: {} }] } }, messages, word, "、")).toBeNull();
    expect(rendered({ code: "of_a_newer_server", arguments: {} }, messages, word, "、")).toBeNull();
  });
});
