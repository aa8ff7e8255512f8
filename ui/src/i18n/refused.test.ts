import { readdirSync, readFileSync } from "node:fs";

import { expect, it } from "vitest";

import templates from "./refusals.json";
import { recognised } from "./stored";

it("each text of a refused value has a message", () => {
  for (const language of readdirSync("messages")) {
    const messages = JSON.parse(readFileSync(`messages/${language}/refused.json`, "utf8")) as Record<string, string>;
    expect(Object.keys(messages), language).toEqual(Object.keys(templates));
  }
});

it("recognises a reason inside of a text", () => {
  const found = (text: string) => recognised(text, templates, []);
  expect(found("String should have at least 3 characters")).toEqual({ code: "short", arguments: { count: "3" } });
  expect(found("String should have at least 1 character")?.code).toBe("empty");
  expect(found("parameter 'day': 'x' is shorter than 2 characters")).toEqual({
    code: "param", arguments: { name: "day", reason: { code: "paramShort", arguments: { value: "'x'", count: "2" } } },
  });
  expect(found("Input should be 'a', 'b' or 'c'")).toEqual({ code: "choice", arguments: { choices: "a', 'b' or 'c" } });
  expect(found("The disk is full")).toBeNull();
});
