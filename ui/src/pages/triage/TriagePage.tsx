// What needs somebody now: failed, late, blocked and running, the health of the components, and the next starts.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, CircleAlert, CircleCheck, CircleMinus, ShieldCheck } from "lucide-react";
import { useMemo, useRef, useState, type ReactNode } from "react";

import { useAddress, useParam } from "../../address";
import type { Schemas } from "../../api/client";
import { formatNumber, useText, type t as Translate } from "../../i18n";
import type { MessageKey } from "../../i18n/keys";
import { LinkButton } from "../../parts/Button";
import { SideSheet } from "../../parts/Dialog";
import { Page } from "../../parts/Page";
import { EmptyState, Loaded, Notice } from "../../parts/status";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateIcon } from "../../state/StateIcon";
import { AgoText, DueText, TimeText } from "../../time/TimeText";
import { ClearDialog, type SelectionProps } from "../actions/dialogs";
import { WhyPanel, type WhyProps } from "../why/WhyPanel";
import { byRun, failedCount, GROUPS, shownGroup, type GroupName } from "./groups";
import { triageQuery } from "./query";
import { BlockedRows, FailedRow, GroupIcon, LateRow, LongestRow, RunningRow, type RowActions, type RowProps } from "./rows";
import styles from "./triage.module.css";

const EMPTY_TEXT = {
  failed: "triage.groupEmptyFailed", late: "triage.groupEmptyLate", blocked: "triage.groupEmptyBlocked", running: "triage.groupEmptyRunning",
} as const satisfies Record<GroupName, MessageKey>;
const LONGEST = 5;
/** Rows of each group, as long as all groups are shown: many failures must not hide what waits. */
const FIRST = 12;

export default function TriagePage() {
  const t = useText();
  const query = useQuery(triageQuery);
  return (
    <Page
      title={t("triage.title")}
      facts={query.data ? <HealthLine health={query.data.health} /> : <span>&nbsp;</span>}
      toolbar={query.data ? <GroupTabs data={query.data} /> : <span />}
    >
      <Loaded query={query}>{(data) => <TriageBody data={data} />}</Loaded>
    </Page>
  );
}

function countsOf(data: Schemas["Triage"]): Record<GroupName, number> {
  return {
    failed: failedCount(data),
    late: data.late.length,
    blocked: data.blocked_total,
    running: Math.max(data.running.length, data.unfinished_total - data.late.length),
  };
}

/** The four counts. Each shows only its group; pressed again, all groups. On a phone they are tabs. */
function GroupTabs({ data }: { data: Schemas["Triage"] }) {
  const t = useText();
  const [show] = useParam("show");
  const counts = countsOf(data);
  const onPhone = shownGroup(show, counts);
  return (
    <nav className={styles.groups} aria-label={t("triage.groups")}>
      {GROUPS.map((one) => (
        <Link
          key={one} to="." search={((old: object) => ({ ...old, show: show === one ? "" : one })) as never} className={styles.group} replace
          data-chosen={show === one || undefined} data-phone={onPhone === one || undefined} data-zero={counts[one] === 0 || undefined}
          aria-current={show === one ? "true" : undefined} title={t(show === one ? "triage.showAll" : "triage.showGroup")}
        >
          <GroupIcon group={one} />
          {t(`triage.${one}`)} <b className="figures">{formatNumber(counts[one])}</b>
        </Link>
      ))}
    </nav>
  );
}

const PARTS = [["scheduler", "scheduler"], ["dag_processor", "parser"], ["triggerer", "triggerer"], ["database", "database"]] as const;

function HealthLine({ health }: { health: Schemas["TriageHealth"] }) {
  const t = useText();
  return (
    <ul className={styles.health} aria-label={t("triage.health")}>
      {PARTS.map(([field, name]) => {
        const part = health[field];
        const text = t(`triage.${name}`);
        const ill = part.status === "unhealthy";
        const title = part.status === null ? t("triage.notHere", { part: text })
          : ill ? t("triage.unhealthy", { part: text, problem: part.problem || t("triage.unhealthyNoReason") }) : t("triage.healthy", { part: text });
        return (
          <li key={field} title={title} data-ill={ill || undefined}>
            <Link to="/admin/$section" params={{ section: "jobs" }}>
              {part.status === null ? <CircleMinus size={14} aria-hidden /> : ill ? <CircleAlert size={14} aria-hidden /> : <CircleCheck size={14} aria-hidden />}
              <span aria-hidden>{text}</span>
              <span className="hidden">{title}</span>
            </Link>
          </li>
        );
      })}
      <li data-ill={health.worker_host.status === "unhealthy" || undefined}>
        <Link to="/admin/$section" params={{ section: "jobs" }} title={health.worker_host.problem}>
          {health.worker_host.status === "unhealthy" ? <CircleAlert size={14} aria-hidden /> : <CircleCheck size={14} aria-hidden />}
          {t("triage.workers", { count: health.workers })}
        </Link>
      </li>
    </ul>
  );
}

/** A row that keys can reach. */
interface Entry {
  key: string;
  group: GroupName;
  clear?: Omit<SelectionProps, "onClose">;
  why?: WhyProps;
  row: (props: RowProps) => ReactNode;
}

function entriesOf(data: Schemas["Triage"], act: RowActions): Entry[] {
  const found: Entry[] = [];
  for (const one of byRun(data.failed)) {
    const [first] = one.tasks;
    const clear = { dagId: one.dagId, runId: one.runId, tasks: one.tasks.map((task) => (task.map_index < 0 ? task.task_id : [task.task_id, task.map_index] as const)) };
    found.push({
      key: `f ${one.dagId} ${one.runId}`, group: "failed", clear,
      why: { dagId: one.dagId, runId: one.runId, taskId: first.task_id, mapIndex: first.map_index },
      row: (props) => <FailedRow failed={one} onClear={() => act.clear(clear)} {...props} />,
    });
  }
  for (const one of data.late) {
    found.push({ key: `l ${one.dag_id} ${one.run_id}`, group: "late", row: (props) => <LateRow run={one} {...props} /> });
  }
  data.blocked.forEach((one, at) => {
    const first = one.first[0];
    const why = first?.task_id ? { dagId: first.dag_id, runId: first.run_id, taskId: first.task_id, mapIndex: first.map_index } : undefined;
    found.push({
      key: `b ${one.rule} ${one.owner} ${at}`, group: "blocked", ...(why ? { why } : {}),
      row: (props) => <BlockedRows block={one} act={act} {...props} />,
    });
  });
  for (const one of data.running) {
    found.push({ key: `r ${one.dag_id} ${one.run_id}`, group: "running", row: (props) => <RunningRow run={one} {...props} /> });
  }
  return found;
}

function TriageBody({ data }: { data: Schemas["Triage"] }) {
  const t = useText();
  const show = useAddress().show ?? "";
  const [clear, setClear] = useState<Omit<SelectionProps, "onClose"> | null>(null);
  const [why, setWhy] = useState<WhyProps | null>(null);
  const [active, setActive] = useState("");
  const body = useRef<HTMLDivElement>(null);
  const act = useMemo<RowActions>(() => ({ clear: setClear, why: setWhy }), []);
  const entries = useMemo(() => entriesOf(data, act), [data, act]);
  const counts = countsOf(data);
  const onPhone = shownGroup(show, counts);

  const keys = useMemo<PageKey[]>(() => {
    const shown = GROUPS.flatMap((group) => (GROUPS.some((one) => one === show) && group !== show ? [] : rowsOf(entries, group, show)));
    const at = shown.findIndex((one) => one.key === active);
    function move(step: number): void {
      const next = shown[at < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.max(0, Math.min(shown.length - 1, at + step))];
      if (!next) return;
      setActive(next.key);
      const row = [...(body.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])].find((one) => one.dataset.row === next.key);
      row?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: "nearest" });
    }
    const current = shown[at];
    return [
      { key: "j", what: "triage.keyDown", run: () => move(1) },
      { key: "k", what: "triage.keyUp", run: () => move(-1) },
      { key: "Enter", what: "triage.keyOpen" },
      { key: "c", what: "triage.keyClear", run: () => current?.clear && setClear(current.clear) },
      { key: "w", what: "triage.keyWhy", run: () => current?.why && setWhy(current.why) },
    ];
  }, [entries, active, show]);
  usePageKeys(keys);

  const fine = counts.failed + counts.late + counts.blocked === 0 && data.broken_files === 0;
  return (
    <div ref={body} className={styles.body}>
      {data.health.scheduler.status === "unhealthy" && <Notice>{t("triage.noAnswer")}</Notice>}
      {data.broken_files > 0 && (
        <Notice>
          {t("triage.brokenFiles", { count: data.broken_files })}{" "}
          <Link to="/admin/$section" params={{ section: "import-errors" }}>{t("triage.showErrors")}</Link>
        </Notice>
      )}
      {fine && show === "" && (
        <EmptyState icon={<ShieldCheck size={28} aria-hidden />} title={t("triage.fine")}>
          <p>{t("triage.fineText")}</p>
          <Next data={data} />
          {data.next.length === 0 && <LinkButton look="primary" to="/dags">{t("triage.openDags")}</LinkButton>}
        </EmptyState>
      )}
      {GROUPS.map((group) => {
        const chosen = GROUPS.some((one) => one === show) ? show === group : counts[group] > 0;
        if (!chosen && onPhone !== group) return null;
        if (fine && show === "" && counts[group] === 0) return null;
        return (
          <section key={group} className={styles.section} data-wide={chosen || undefined} data-phone={onPhone === group || undefined} aria-label={t(`triage.${group}`)}>
            <h2>
              <GroupIcon group={group} /> {t(`triage.${group}`)} <span className="muted figures">{formatNumber(counts[group])}</span>
              {group === "running" && <Link className={styles.more} to="/runs" search={{ state: "running,queued" } as never}>{t("triage.allRuns")}</Link>}
            </h2>
            {counts[group] === 0 && <p className="muted">{t(EMPTY_TEXT[group])}</p>}
            <ul className={styles.rows}>
              {rowsOf(entries, group, show).map((one) => (
                <RowOf key={one.key} entry={one} active={one.key === active} onFocus={() => setActive(one.key)} />
              ))}
            </ul>
            {rowsOf(entries, group, show).length < rowsOf(entries, group, group).length && (
              <Link className={styles.all} to="." search={((old: object) => ({ ...old, show: group })) as never}>
                {t("triage.allOf", { count: rowsOf(entries, group, group).length })} <ChevronRight size={14} aria-hidden />
              </Link>
            )}
            {group === "running" && data.tasks_running.length > 0 && <Longest data={data} />}
          </section>
        );
      })}
      <Foot data={data} hideNext={fine && show === ""} t={t} />
      {clear && <ClearDialog {...clear} onClose={() => setClear(null)} />}
      {why && (
        <SideSheet title={t("triage.whyTitle", { task: why.taskId })} onClose={() => setWhy(null)}>
          <WhyPanel {...why} />
        </SideSheet>
      )}
    </div>
  );
}

/** The rows of a group: all if only it is shown, else the first. */
function rowsOf(entries: readonly Entry[], group: GroupName, show: string): readonly Entry[] {
  const all = entries.filter((one) => one.group === group);
  return show === group ? all : all.slice(0, FIRST);
}

function RowOf({ entry, active, onFocus }: { entry: Entry; active: boolean; onFocus: () => void }) {
  return <>{entry.row({ rowKey: entry.key, active, onFocus })}</>;
}

function Longest({ data }: { data: Schemas["Triage"] }) {
  const t = useText();
  const shown = data.tasks_running.slice(0, LONGEST);
  return (
    <>
      <h3 className={styles.sub}>
        {t("triage.longestTasks")} <span className="muted small figures">{t("triage.shownOf", { shown: shown.length, total: formatNumber(data.tasks_running_total) })}</span>
      </h3>
      <ul className={styles.rows}>
        {shown.map((one) => <LongestRow key={`${one.dag_id} ${one.run_id} ${one.task_id} ${one.map_index}`} instance={one} />)}
      </ul>
    </>
  );
}

function Next({ data }: { data: Schemas["Triage"] }) {
  const t = useText();
  if (data.next.length === 0) return <p className="muted">{t("triage.nextNone")}</p>;
  return (
    <ul className={styles.next}>
      {data.next.map((one) => {
        const task = one.task_id ?? "";
        const what = one.kind === "retry" ? t("triage.nextRetry", { task }) : one.kind === "reschedule" ? t("triage.nextReschedule", { task })
          : one.kind === "queued" ? t("triage.nextQueued") : t("triage.nextRun");
        return (
          <li key={`${one.at} ${one.dag_id} ${one.run_id} ${task}`}>
            <TimeText at={one.at} precision="minute" zoned />
            <Link className="cut" to="/dags/$dagId" params={{ dagId: one.dag_id }} title={one.dag_id}>{one.dag_id}</Link>
            <span className="muted cut" data-kind={one.kind} title={what}>{what}</span>
            <span className="muted"><DueText at={one.at} /></span>
          </li>
        );
      })}
    </ul>
  );
}

function Foot({ data, hideNext, t }: { data: Schemas["Triage"]; hideNext: boolean; t: typeof Translate }) {
  return (
    <div className={styles.foot}>
      {!hideNext && (
        <section aria-label={t("triage.next")}>
          <h2>{t("triage.next")}</h2>
          <Next data={data} />
        </section>
      )}
      {data.fixed.length > 0 && (
        <details className={styles.fixed}>
          <summary><h2>{t("triage.fixed")}</h2> <span className="muted figures">{data.fixed.length}</span></summary>
          <ul className={styles.next}>
            {data.fixed.map((one) => (
              <li key={`${one.dag_id} ${one.run_id}`}>
                <StateIcon state="success" />
                <Link className="cut" to="/dags/$dagId/runs/$runId" params={{ dagId: one.dag_id, runId: one.run_id }} title={one.dag_id}>{one.dag_id}</Link>
                <span className="muted"><AgoText at={one.end_date} /></span>
                <Link className="muted cut" to="/dags/$dagId/runs/$runId" params={{ dagId: one.dag_id, runId: one.failed_run_id }}>{one.failed_run_id}</Link>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
