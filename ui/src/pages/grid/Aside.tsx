// The panel beside the grid: the chosen run, group or task, with the possible actions.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Eraser, FileText, X } from "lucide-react";
import { useMemo, useState, type ReactNode } from "react";

import { api, read } from "../../api/client";
import { useRefusal } from "../../api/me";
import { live, runTopic } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Button, LinkButton } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import parts from "../../parts/parts.module.css";
import { ErrorState } from "../../parts/status";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { BY_URGENCY, runTypeWord, stateWord, UNFINISHED } from "../../state/states";
import { DurationText, TimeText } from "../../time/TimeText";
import { ClearDialog, MarkDialog, type SelectionProps } from "../actions/dialogs";
import { WhyPanel } from "../why/WhyPanel";
import { ABSENT, type Column, type Window } from "./cells";
import styles from "./grid.module.css";
import { GROUP, labelOf, MAPPED_GROUP, type Structure } from "./rows";

interface Props {
  dagId: string;
  structure: Structure;
  window: Window;
  runId: string;
  rowId: string;
  onClose: () => void;
}

export function Aside({ dagId, structure, window: shown, runId, rowId, onClose }: Props) {
  const t = useText();
  const column = shown.columns.find((one) => one.run.run_id === runId);
  const row = rowId ? structure.ids.indexOf(rowId) : -1;
  const kind = structure.kinds[row];
  const code = column?.cells[row] ?? ABSENT;
  const state = row < 0 ? column?.run.state : code === ABSENT ? null : shown.states[code];
  const isTask = row >= 0 && kind !== GROUP && kind !== MAPPED_GROUP;
  return (
    <aside className={styles.aside} aria-label={t("grid.chosen")}>
      <div className={styles.asideBody}>
        <div className={styles.asideHead}>
          <div className={styles.asideTop}>
            {state ? <StateChip state={state} /> : <span className="muted">{t("grid.absent")}</span>}
            <Button look="quiet" compact icon label={t("common.close")} onPress={onClose}><X size={14} /></Button>
          </div>
          <h2>{row < 0 ? runId : labelOf(structure, row)}</h2>
          {row >= 0 && <Link className="mono cut" to="/dags/$dagId/runs/$runId" params={{ dagId, runId }} title={runId}>{runId}</Link>}
        </div>
        {isTask && code !== ABSENT && <TaskFacts dagId={dagId} runId={runId} taskId={rowId} unfinished={UNFINISHED.has(state ?? "none")} />}
        {!isTask && column && <GroupFacts dagId={dagId} structure={structure} window={shown} column={column} row={row} />}
      </div>
      <Foot dagId={dagId} runId={runId} structure={structure} row={row} isTask={isTask} present={row < 0 ? Boolean(column) : code !== ABSENT} />
    </aside>
  );
}

function TaskFacts({ dagId, runId, taskId, unfinished }: { dagId: string; runId: string; taskId: string; unfinished: boolean }) {
  const t = useText();
  const query = useQuery({
    ...live(["dag", dagId, "run", runId, "task", taskId, null], [runTopic(dagId, runId)], (signal) =>
      read(api.GET("/api/tradewind/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}", { params: { path: { dag_id: dagId, run_id: runId, task_id: taskId } }, signal })),
    ),
    placeholderData: keepPreviousData,
  });
  if (!query.data) return query.error ? <ErrorState error={query.error} retry={() => void query.refetch()} /> : <div style={{ minHeight: 120 }} />;
  const { instance, instances, doc } = query.data;
  const facts: [string, ReactNode][] = [
    [t("common.started"), instance.start_date ? <TimeText key="s" at={instance.start_date} zoned /> : "–"],
    [t("common.duration"), instance.start_date ? <DurationText key="d" start={instance.start_date} end={instance.end_date} /> : "–"],
    [t("grid.try"), t("grid.tryOf", { number: instance.try_number, most: instance.max_tries + 1 })],
    [t("grid.pool"), <Link key="p" to="/pools/$pool" params={{ pool: instance.pool }}>{instance.pool}</Link>],
    [t("grid.operator"), <span key="o" className="mono">{instance.operator_name ?? instance.operator ?? ""}</span>],
  ];
  if (instances > 1) facts.push([t("grid.instances"), <Link key="m" to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId, taskId }}>{formatNumber(instances)}</Link>]);
  return (
    <>
      <dl className={parts.definition}>
        {facts.map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {unfinished && instance.state !== "running" && <WhyPanel dagId={dagId} runId={runId} taskId={taskId} mapIndex={instance.map_index} />}
      {doc && <p className="muted wrap" style={{ whiteSpace: "pre-wrap" }}>{doc}</p>}
    </>
  );
}

/** Counts of a run or a group. Each leads to exactly these task instances. */
function GroupFacts({ dagId, structure, window: shown, column, row }: { dagId: string; structure: Structure; window: Window; column: Column; row: number }) {
  const t = useText();
  const { run } = column;
  const counts = useMemo(() => {
    if (row < 0) return run.totals;
    const found = new Array<number>(shown.states.length).fill(0);
    for (let at = row + 1; at < (structure.ends[row] ?? 0); at += 1) {
      const mapped = run.mapped[String(at)];
      const state = column.cells[at] ?? ABSENT;
      if (mapped) for (let place = 0; place + 1 < mapped.length; place += 2) found[mapped[place] ?? 0] = (found[mapped[place] ?? 0] ?? 0) + (mapped[place + 1] ?? 0);
      else if (state !== ABSENT && structure.kinds[at] !== GROUP && structure.kinds[at] !== MAPPED_GROUP) found[state] = (found[state] ?? 0) + 1;
    }
    return found;
  }, [column, row, run, shown.states.length, structure]);
  return (
    <>
      <dl className={parts.definition}>
        <dt>{t("grid.runType")}</dt>
        <dd>{runTypeWord(run.run_type)}</dd>
        <dt>{t("grid.logicalDate")}</dt>
        <dd>{run.logical_date ? <TimeText at={run.logical_date} zoned /> : "–"}</dd>
        <dt>{t("common.started")}</dt>
        <dd>{run.start_date ? <TimeText at={run.start_date} zoned /> : "–"}</dd>
        <dt>{t("common.duration")}</dt>
        <dd>{run.start_date ? <DurationText start={run.start_date} end={run.end_date} /> : "–"}</dd>
      </dl>
      <ul className={styles.counts}>
        {BY_URGENCY.map((state) => {
          const count = counts[shown.states.indexOf(state)] ?? 0;
          if (!count) return null;
          const prefix = row < 0 ? {} : { filter: structure.ids[row] ?? "" };
          return (
            <li key={state}>
              <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId: run.run_id }} search={{ state, ...prefix } as never}>
                <StateIcon state={state} decorative /> {stateWord(state)} <b>{formatNumber(count)}</b>
              </Link>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Foot({ dagId, runId, structure, row, isTask, present }: { dagId: string; runId: string; structure: Structure; row: number; isTask: boolean; present: boolean }) {
  const t = useText();
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  const refused = useRefusal("edit:task_instance") ?? (present ? undefined : t("grid.absent"));
  const id = structure.ids[row] ?? "";
  const tasks = row < 0 ? [] : isTask ? [id] : structure.ids.slice(row + 1, structure.ends[row] ?? row + 1).filter((_, at) => { const kind = structure.kinds[row + 1 + at]; return kind !== GROUP && kind !== MAPPED_GROUP; });
  const selection: SelectionProps = { dagId, runId, tasks, onClose: () => setDialog(null) };
  return (
    <div className={styles.asideFoot}>
      {isTask ? (
        <LinkButton look="primary" to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId, taskId: id }}>
          <FileText size={14} aria-hidden /> {t("common.openLog")}
        </LinkButton>
      ) : (
        <LinkButton look="primary" to="/dags/$dagId/runs/$runId" params={{ dagId, runId }}>{t("grid.openRun")}</LinkButton>
      )}
      <Button refused={refused} onPress={() => setDialog("clear")}><Eraser size={14} aria-hidden /> {t("common.clear")}</Button>
      <Button refused={refused} onPress={() => setDialog("mark")}>{t("common.mark")}</Button>
      <CopyAs
        action={{
          command: commandLine("tradewind", isTask ? "tasks" : "runs", isTask ? "why" : "show", dagId, isTask && id, runId), method: "GET",
          path: `/api/tradewind/v1/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}${isTask ? `/tasks/${encodeURIComponent(id)}` : ""}`,
        }}
      />
      {dialog === "clear" && <ClearDialog {...selection} />}
      {dialog === "mark" && <MarkDialog {...selection} />}
    </div>
  );
}
