import { describe, expect, it } from "vitest";

import { assetDrawing, assetKey, dagKey, type AssetLinks } from "./graph";

function asset(id: number, producers: string[], consumers: string[]): AssetLinks {
  return { id, name: `a${id}`, uri: `s3://a${id}`, producers, consumers, last_event_at: null };
}

// load → 1 → clean → 2 → report, and other → 3 → report
const ASSETS = [asset(1, ["load"], ["clean"]), asset(2, ["clean"], ["report"]), asset(3, ["other"], ["report"])];

function names(focus = ""): string[] {
  return assetDrawing(ASSETS, focus).nodes.map((one) => one.name).sort();
}

describe("assetDrawing", () => {
  it("has each DAG and each asset once, with an edge for each link", () => {
    const { nodes, model } = assetDrawing(ASSETS);
    expect(names()).toEqual(["a1", "a2", "a3", "clean", "load", "other", "report"]);
    expect(model.edges.map((one) => [nodes[one.from]?.name, nodes[one.to]?.name])).toEqual([
      ["load", "a1"], ["a1", "clean"], ["clean", "a2"], ["a2", "report"], ["other", "a3"], ["a3", "report"],
    ]);
  });
  it("keeps what comes before and after the chosen node, not its siblings", () => {
    expect(names(assetKey(2))).toEqual(["a1", "a2", "clean", "load", "report"]);
    expect(names(dagKey("other"))).toEqual(["a3", "other", "report"]);
  });
  it("ends with assets that depend on each other in a circle", () => {
    const circle = [asset(1, ["x"], ["y"]), asset(2, ["y"], ["x"])];
    expect(assetDrawing(circle, assetKey(1)).nodes).toHaveLength(4);
  });
});
