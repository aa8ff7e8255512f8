// The definition of a version of a DAG as text, so that two versions can be compared line by line. Pure.
import { isGroup, isMapped, nameOf, neighbours, type Structure } from "../graph/model";

/** One paragraph for each task and group, in the order of the grid, indented by group. */
export function definitionText(structure: Structure): string {
  const { up } = neighbours(structure);
  const setups = new Set(structure.setups), teardowns = new Set(structure.teardowns);
  const depth: number[] = [];
  const lines: string[] = [];
  structure.ids.forEach((id, row) => {
    const parent = structure.parents[row] ?? -1;
    depth[row] = parent < 0 ? 0 : (depth[parent] ?? 0) + 1;
    const indent = "  ".repeat(depth[row] ?? 0);
    const name = nameOf(structure, row);
    const label = structure.labels[String(row)];
    const put = (field: string, value: string | number | undefined): void => {
      if (value !== undefined) lines.push(`${indent}  ${field}: ${value}`);
    };
    if (isGroup(structure, row)) lines.push(`${indent}${isMapped(structure, row) ? "mapped " : ""}group ${name}`);
    else lines.push(`${indent}${isMapped(structure, row) ? "mapped " : ""}task ${name}`);
    if (label) put("id", id);
    if (!isGroup(structure, row)) {
      put("operator", structure.operators[structure.operator[row] ?? -1]);
      put("pool", structure.pools[structure.pool[row] ?? -1]);
      put("retries", structure.retries[row]);
      put("trigger_rule", structure.trigger_rules[structure.trigger_rule[row] ?? -1]);
      if (setups.has(row)) put("role", "setup");
      if (teardowns.has(row)) put("role", "teardown");
      const names = (up[row] ?? []).map((one) => structure.ids[one] ?? "").sort();
      if (names.length) put("upstream", names.join(", "));
    }
    const doc = structure.docs[String(row)];
    if (doc) doc.split("\n").forEach((line, at) => put(at ? "    " : "doc", line));
  });
  // Each line ends: without it, the last line of a text would differ from the same line inside of another one.
  return lines.map((one) => `${one}\n`).join("");
}
