// The tasks of a run with their states, starts and durations. One click shows the failed tasks; each row opens the task.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";

import { useParam } from "../../address";
import type { Schemas } from "../../api/client";
import { enc } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { FilterRow, SearchParam, Segments, useNarrow, usePhone } from "../../parts/filters";
import parts from "../../parts/parts.module.css";
import { EmptyState, Loaded, Loading } from "../../parts/status";
import { To } from "../../parts/To";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { StateIcon } from "../../state/StateIcon";
import { BY_URGENCY, stateColour, stateOf, stateWord } from "../../state/states";
import { clockText, durationText, momentText } from "../../time/format";
import { useNow } from "../../time/now";
import { useZone } from "../../time/zone";
import { RunWhyPanel } from "../why/WhyPanel";
import { runQuery, versionQuery } from "./query";
import { chosenRows, countStates, taskRows, type TaskRow } from "./rows";
import styles from "./run.module.css";

export default function TasksTab() {
  const { dagId, runId } = useParams({ from: "/shell/dags/$dagId/runs/$runId/" });
  const query = useQuery(runQuery(dagId, runId));
  return <Loaded query={query} lines={12}>{(page) => <Tasks page={page} />}</Loaded>;
}

function Tasks({ page }: { page: Schemas["PageRun"] }) {
  const t = useText();
  const { run } = page;
  const structure = useQuery(versionQuery(run.dag_id, page.version));
  const [state] = useParam("state");
  const [text] = useParam("q");
  const [order, setOrder] = useParam("order");
  const zone = useZone();
  const narrow = useNarrow(), phone = usePhone();
  const rows = useMemo(() => (structure.data ? taskRows(structure.data, page) : []), [structure.data, page]);
  const counts = useMemo(() => countStates(rows), [rows]);
  const elapsed = useElapsed(run.start_date, run.end_date);
  // The order by duration does not change each second: what runs is placed by the time of the last answer.
  const answered = rows.reduce((most, one) => Math.max(most, one.start + Math.max(0, one.duration)), 0);
  const shown = useMemo(() => chosenRows(rows, state, text, order, answered), [rows, state, text, order, answered]);
  const started = run.start_date;
  const sameDay = started !== null && momentText(started, zone, "day") === momentText(run.end_date ?? Date.parse(started) + elapsed, zone, "day");

  if (run.state === "queued" && run.start_date === null) {
    return <div className={styles.why}><RunWhyPanel dagId={run.dag_id} runId={run.dag_run_id} /></div>;
  }
  const at = (one: TaskRow): string => {
    if (one.start < 0 || started === null) return "";
    const moment = Date.parse(started) + one.start;
    return sameDay ? clockText(moment, zone) : momentText(moment, zone).slice(5);
  };
  const columns: Column<TaskRow>[] = [
    {
      id: "task", title: t("common.task"), sort: "task", width: phone ? "minmax(0, 1fr)" : "minmax(200px, 2fr)",
      render: (one) => (
        <span className={styles.task}>
          <StateIcon state={one.state} />
          <span className="cut" title={one.id}><span className="muted">{one.group}</span>{one.name}</span>
          {one.instances > 1 && <span className={parts.badge} title={t("run.instances", { count: one.instances })}>×{formatNumber(one.instances)}</span>}
        </span>
      ),
    },
    ...(phone ? [] : [{ id: "state", title: t("common.state"), width: "132px", render: (one: TaskRow) => <span className="muted">{stateWord(one.state)}</span> }]),
    ...(narrow ? [] : [{ id: "operator", title: t("run.operator"), width: "minmax(80px, 160px)", render: (one: TaskRow) => <span className="muted" title={one.operator}>{one.operator}</span> }]),
    ...(phone ? [] : [{ id: "tries", title: t("run.tries"), sort: "tries", width: "56px", right: true, render: (one: TaskRow) => <span className="figures">{one.tries > 1 ? <b>{one.tries}</b> : one.tries || ""}</span> }]),
    ...(phone ? [] : [{ id: "start", title: t("common.started"), sort: "start", width: sameDay ? "76px" : "116px", right: true, render: (one: TaskRow) => <span className="figures muted">{at(one)}</span> }]),
    { id: "duration", title: t("common.duration"), sort: "duration", width: "76px", right: true, render: (one) => <Duration row={one} elapsed={elapsed} /> },
    ...(phone ? [] : [{ id: "bar", title: t("run.bar"), width: "minmax(120px, 2fr)", render: (one: TaskRow) => <Bar row={one} elapsed={elapsed} /> }]),
  ];
  return (
    <div className={styles.tab}>
      <div className={styles.toolbar}>
        <SearchParam name="q" label={t("run.filterTasks")} width={240} />
        <FilterRow>
          <Segments
            name="state" label={t("common.state")}
            choices={[
              { value: "", label: t("common.all"), count: rows.length },
              ...BY_URGENCY.filter((one) => counts.has(one) || one === state).map((one) => ({
                value: one, label: <><StateIcon state={one} decorative size={14} /> {stateWord(one)}</>, count: counts.get(one) ?? 0, name: `${stateWord(one)} ${counts.get(one) ?? 0}`,
              })),
            ]}
          />
        </FilterRow>
      </div>
      {structure.data === undefined ? (
        <Loading lines={12} />
      ) : shown.length === 0 ? (
        <EmptyState title={rows.length ? t("run.noneMatch") : t("run.noTasks")}>
          {rows.length > 0 && <To href={location.pathname}>{t("common.clearFilters")}</To>}
        </EmptyState>
      ) : (
        <div className={styles.table}>
          <VirtualTable
            label={t("run.tasks")} rows={shown} columns={columns} rowKey={(one) => one.id} order={order} onOrder={setOrder} rowHeight={32}
            href={(one) => `/dags/${enc(run.dag_id)}/runs/${enc(run.dag_run_id)}/tasks/${enc(one.id)}`}
          />
        </div>
      )}
    </div>
  );
}

/** Milliseconds since the start of the run; of one that runs it grows. */
function useElapsed(start: string | null, end: string | null): number {
  const now = useNow();
  if (start === null) return 0;
  return Math.max(1, (end === null ? now : Date.parse(end)) - Date.parse(start));
}

function lengthOf(row: TaskRow, elapsed: number): number {
  return row.duration >= 0 ? row.duration : Math.max(0, elapsed - row.start);
}

function Duration({ row, elapsed }: { row: TaskRow; elapsed: number }) {
  if (row.start < 0) return null;
  const seconds = lengthOf(row, elapsed) / 1000;
  return <span className="figures">{durationText(row.duration < 0 ? Math.floor(seconds) : seconds)}</span>;
}

function Bar({ row, elapsed }: { row: TaskRow; elapsed: number }) {
  if (row.start < 0) return null;
  const share = (value: number): string => `${Math.min(100, (value / elapsed) * 100)}%`;
  return (
    <span className={styles.bar} aria-hidden>
      <i style={{ left: share(row.start), width: share(lengthOf(row, elapsed)), background: stateColour(stateOf(row.state)) }} data-state={row.state} />
    </span>
  );
}
