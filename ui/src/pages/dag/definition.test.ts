import { expect, it } from "vitest";

import type { Structure } from "../graph/model";
import { definitionText } from "./definition";

it("writes one paragraph for each task and group", () => {
  const structure: Structure = {
    dag_id: "x", display_name: "x", version: 1, task_count: 2, ids: ["a", "g", "g.b"], parents: [-1, -1, 1], kinds: [0, 1, 2], ends: [1, 3, 3],
    operators: ["Bash"], operator: [0, -1, 0], trigger_rules: ["all_done"], trigger_rule: [0, -1, 0], pools: ["p"], pool: [0, -1, 0], retries: [0, -1, 3],
    edges: [0, 2], edge_labels: [], labels: { "2": "Load" }, docs: { "1": "Two\nlines" }, setups: [0], teardowns: [],
  };
  expect(definitionText(structure)).toBe([
    "task a", "  operator: Bash", "  pool: p", "  retries: 0", "  trigger_rule: all_done", "  role: setup",
    "group g", "  doc: Two", "      : lines",
    "  mapped task Load", "    id: g.b", "    operator: Bash", "    pool: p", "    retries: 3", "    trigger_rule: all_done", "    upstream: a",
    "",
  ].join("\n"));
});
