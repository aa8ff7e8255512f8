import { describe, expect, it } from "vitest";

import { recognised } from "./stored";

const TEMPLATES = {
  is: "{task} is {state}", lost: "its attempt was lost", waits_for: "it waits for {what}", trigger: "its trigger {trigger} to fire", lost_often: "{reason}; it was lost {times} times, which is the limit", marked: "marked {state} by {actor}",
  marked_note: "marked {state} by {actor}: {note}", no_dag: "There is no DAG '{dag}'.",
};
const STATES = ["failed", "upstream_failed"];
const found = (text: string) => recognised(text, TEMPLATES, STATES);

describe("a text of the server", () => {
  it("is recognised by its template", () => {
    expect(found("load.a[3] is upstream_failed")).toEqual({ code: "is", arguments: { task: "load.a[3]", state: "upstream_failed" } });
    expect(found("marked failed by ada")).toEqual({ code: "marked", arguments: { state: "failed", actor: "ada" } });
  });
  it("that fits several templates has the one with the most words", () => {
    expect(found("marked failed by ada: the source is late")).toEqual({ code: "marked_note", arguments: { state: "failed", actor: "ada", note: "the source is late" } });
  });
  it("may contain another one as its reason", () => {
    expect(found("its attempt was lost; it was lost 3 times, which is the limit")).toEqual({ code: "lost_often", arguments: { reason: { code: "lost", arguments: {} }, times: "3" } });
  });
  it("may name what a task waits for", () => {
    const what = { code: "trigger", arguments: { trigger: "FileTrigger" } };
    expect(found("it waits for its trigger FileTrigger to fire")).toEqual({ code: "waits_for", arguments: { what } });
    expect(found("it waits for 2026-11-27T02:00:00Z")).toEqual({ code: "waits_for", arguments: { what: "2026-11-27T02:00:00Z" } });
  });
  it("may end with a guess", () => {
    const first = { code: "no_dag", arguments: { dag: "ordres" } };
    expect(found("There is no DAG 'ordres'. Did you mean 'orders'?")).toEqual({ code: "then", arguments: { first, second: { code: "did_you_mean", arguments: { name: "orders" } } } });
  });
  it.each(["KeyError: 'sku'", "the disk is full", "", "No such file. Did you mean 'x'?"])("that somebody else wrote stays: %s", (text) => {
    expect(found(text)).toBeNull();
  });
});
