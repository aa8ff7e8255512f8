import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { expect, it } from "vitest";

const HERE = import.meta.dirname;

/** Module → the modules of the page that it imports, also only for their types. Imports that wait (`import()`) are left out. */
function imports(): Map<string, string[]> {
  const files = readdirSync(HERE, { recursive: true, encoding: "utf8" }).filter((one) => /\.tsx?$/.test(one)).map((one) => join(HERE, one));
  const names = new Set(files);
  const found = new Map<string, string[]>();
  for (const file of files) {
    const named = [...readFileSync(file, "utf8").matchAll(/^(?:import|export) [^"']*?from "(\.[^"]*)";$/gms)].map((one) => resolve(dirname(file), one[1] ?? ""));
    found.set(file, named.flatMap((one) => [one, `${one}.ts`, `${one}.tsx`, join(one, "index.ts")].find((name) => names.has(name)) ?? []));
  }
  return found;
}

it("no module imports itself through others", () => {
  const graph = imports();
  const done = new Set<string>();
  const circles: string[] = [];
  function visit(file: string, path: readonly string[]): void {
    if (path.includes(file)) {
      circles.push([...path.slice(path.indexOf(file)), file].map((one) => one.slice(HERE.length + 1)).join(" → "));
    } else if (!done.has(file)) {
      for (const one of graph.get(file) ?? []) visit(one, [...path, file]);
      done.add(file);
    }
  }
  for (const file of graph.keys()) visit(file, []);
  expect([...graph.values()].flat().length).toBeGreaterThan(300);
  expect(circles).toEqual([]);
});
