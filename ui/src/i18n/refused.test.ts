import { readdirSync, readFileSync } from "node:fs";

import { expect, it } from "vitest";

import templates from "./refusals.json";
import { refusal } from "./refused";

it("each text of a refused value has a message", () => {
  for (const language of readdirSync("messages")) {
    const messages = JSON.parse(readFileSync(`messages/${language}/refused.json`, "utf8")) as Record<string, string>;
    expect(Object.keys(messages), language).toEqual(Object.keys(templates));
  }
});

it("recognises a reason inside of a text", () => {
  expect(refusal("String should have at least 3 characters")).toEqual({ code: "short", arguments: { count: "3" } });
  expect(refusal("String should have at least 1 character")?.code).toBe("empty");
  expect(refusal("parameter 'day': 'x' is shorter than 2 characters")).toEqual({
    code: "param", arguments: { name: "day", reason: { code: "paramShort", arguments: { value: "'x'", count: "2" } } },
  });
  expect(refusal("Input should be 'a', 'b' or 'c'")).toEqual({ code: "choice", arguments: { choices: "a', 'b' or 'c" } });
  expect(refusal("Value error, the file is gone")).toEqual({ code: "value", arguments: { reason: "the file is gone" } });
  expect(refusal("'x' is shorter than 2 characters")).toBeNull();
  expect(refusal("The disk is full")).toBeNull();
});
