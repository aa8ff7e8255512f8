// The graph as a table: each task with its state, what it waits for, and what waits for it. The accessible twin of the drawing.
import { useMemo } from "react";

import { useText } from "../../i18n";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { StateChip } from "../../state/StateIcon";
import type { GraphStates } from "./GraphCanvas";
import { isGroup, nameOf, type Neighbours, type Structure } from "./model";
import styles from "./graph.module.css";

const NAMED = 3;

interface Props {
  structure: Structure;
  states: GraphStates | null;
  beside: Neighbours;
  found: ReadonlySet<number> | null;
  onSelect: (row: number) => void;
  narrow: boolean;
}

export function GraphList({ structure, states, beside, found, onSelect, narrow }: Props) {
  const t = useText();
  const rows = useMemo(() => structure.ids.map((_, row) => row).filter((row) => !isGroup(structure, row) && (!found || found.has(row))), [structure, found]);
  const names = (list: readonly number[]) => (
    <span title={list.map((one) => structure.ids[one]).join("\n")}>
      {list.length === 0 ? <span className="muted">–</span> : t("graph.names", { names: list.slice(0, NAMED).map((one) => nameOf(structure, one)).join(", "), more: Math.max(0, list.length - NAMED) })}
    </span>
  );
  const columns: Column<number>[] = [
    {
      id: "task", title: t("common.task"), width: "minmax(180px, 2fr)",
      render: (row) => <button type="button" className={styles.rowButton} title={structure.ids[row]} onClick={() => onSelect(row)}>{structure.ids[row]}</button>,
    },
    ...(states ? [{ id: "state", title: t("common.state"), width: "150px", render: (row: number) => { const code = states.codes[row] ?? -1; return <StateChip state={code < 0 ? null : states.names[code]} />; } }] : []),
    ...(narrow ? [] : [
      { id: "operator", title: t("graph.operator"), width: "minmax(110px, 1fr)", render: (row: number) => structure.operators[structure.operator[row] ?? -1] ?? "" },
      { id: "up", title: t("graph.upstream"), width: "minmax(140px, 1.5fr)", render: (row: number) => names(beside.up[row] ?? []) },
      { id: "down", title: t("graph.downstream"), width: "minmax(140px, 1.5fr)", render: (row: number) => names(beside.down[row] ?? []) },
    ]),
  ];
  return <VirtualTable label={t("graph.listOf", { dag: structure.display_name })} rows={rows} columns={columns} rowKey={(row) => structure.ids[row] ?? ""} onOpen={onSelect} />;
}
