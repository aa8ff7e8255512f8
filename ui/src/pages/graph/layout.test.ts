import Elk from "elkjs";
import { describe, expect, it } from "vitest";

import { elkGraph, fitView, heldView, layoutOf, nearest, roundedPath, zoomAt } from "./layout";
import type { GraphModel } from "./model";

const MODEL: GraphModel = {
  nodes: [
    { row: 0, parent: -1, kind: "task", width: 140, height: 44 },
    { row: 1, parent: -1, kind: "open", width: 140, height: 44 },
    { row: 2, parent: 1, kind: "task", width: 140, height: 44 },
    { row: 3, parent: -1, kind: "closed", width: 140, height: 52 },
  ],
  edges: [
    { id: "0-2", from: 0, to: 2, count: 1, label: "if it is new", cleanup: false },
    { id: "2-3", from: 2, to: 3, count: 4, label: "", cleanup: false },
  ],
};

describe("a layout of ELK", () => {
  it("puts upstream before downstream and tasks inside their group, in coordinates of the whole graph", async () => {
    const layout = layoutOf(await new Elk().layout(elkGraph(MODEL, "right")));
    const [first, group, inside, last] = [0, 1, 2, 3].map((row) => layout.boxes.get(row) ?? { x: NaN, y: NaN, width: NaN, height: NaN });
    expect(first && inside && first.x + first.width < inside.x).toBe(true);
    expect(inside && last && inside.x + inside.width < last.x).toBe(true);
    expect(group && inside && group.x < inside.x && group.y < inside.y && inside.x + inside.width < group.x + group.width && inside.y + inside.height < group.y + group.height).toBe(true);
    const edge = layout.edges.find((one) => one.id === "0-2");
    expect(edge?.points[0]?.[0]).toBeCloseTo((first?.x ?? 0) + (first?.width ?? 0), 0);
    expect(edge?.points.at(-1)?.[0]).toBeCloseTo(inside?.x ?? 0, 0);
    expect(edge?.label?.text).toBe("if it is new");
  });
  it("goes down when it is wanted", async () => {
    const layout = layoutOf(await new Elk().layout(elkGraph(MODEL, "down")));
    expect((layout.boxes.get(0)?.y ?? 0) + 44).toBeLessThan(layout.boxes.get(2)?.y ?? 0);
  });
});

it("rounds the corners of a path, never beyond half of a stretch", () => {
  expect(roundedPath([[0, 0], [10, 0]])).toBe("M0 0L10 0");
  expect(roundedPath([[0, 0], [20, 0], [20, 20]], 8)).toBe("M0 0L12 0Q20 0 20 8L20 20");
  expect(roundedPath([[0, 0], [4, 0], [4, 20]], 8)).toBe("M0 0L2 0Q4 0 4 2L4 20");
  expect(roundedPath([])).toBe("");
});

it("fits a graph into a window without enlarging it", () => {
  expect(fitView({ width: 100, height: 50 }, 400, 400)).toEqual({ zoom: 1, x: 150, y: 175 });
  expect(fitView({ width: 800, height: 50 }, 400, 400).zoom).toBe(0.5);
});

it("keeps the point below the pointer when it zooms", () => {
  const after = zoomAt({ x: 10, y: 20, zoom: 1 }, 2, 110, 120);
  expect((110 - after.x) / after.zoom).toBe(100);
  expect((120 - after.y) / after.zoom).toBe(100);
  expect(zoomAt({ x: 0, y: 0, zoom: 1 }, 99, 0, 0).zoom).toBe(2);
});

it("keeps a part of the graph in the window", () => {
  expect(heldView({ x: 9999, y: -9999, zoom: 1 }, { width: 500, height: 500 }, 400, 400)).toEqual({ zoom: 1, x: 320, y: -420 });
});

it("finds the nearest box in a direction", () => {
  const boxes = new Map([[0, { x: 0, y: 0, width: 10, height: 10 }], [1, { x: 50, y: 0, width: 10, height: 10 }], [2, { x: 20, y: 60, width: 10, height: 10 }]]);
  expect(nearest(boxes, 0, "ArrowRight")).toBe(1);
  expect(nearest(boxes, 0, "ArrowDown")).toBe(2);
  expect(nearest(boxes, 0, "ArrowLeft")).toBeUndefined();
});
