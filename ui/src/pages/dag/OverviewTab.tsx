// A DAG at a glance: its last result, how long its runs take, what fails most, what comes next, and what is wrong.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { CircleCheck, Rocket, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { dagTopic, live } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { scheduleText, storedText } from "../../i18n/phrases";
import { LinkButton } from "../../parts/Button";
import { Loaded } from "../../parts/status";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { runTypeWord, stateColour, stateOf, stateWord } from "../../state/states";
import { durationText, momentText } from "../../time/format";
import { useNow } from "../../time/now";
import { AgoText, DueText, DurationText, TimeText } from "../../time/TimeText";
import { useZone } from "../../time/zone";
import { Awaited } from "../assets/Awaited";
import { nameOf } from "../graph/model";
import type { CellsRun, Window } from "../grid/cells";
import { structureQuery, windowQuery } from "../grid/query";
import { axisSteps, failingTasks, runSeconds } from "./overview";
import { headQuery } from "./query";
import styles from "./overview.module.css";

const RUNS = 25;
const NEXT = 5;

export default function OverviewTab() {
  const t = useText();
  const { dagId = "" } = useParams({ strict: false });
  // The answer with the cells contains the head.
  const head = useQuery({ ...headQuery(dagId), enabled: false });
  const cells = useQuery(windowQuery(dagId, RUNS, ""));
  return (
    <div className={styles.page}>
      <Loaded query={cells}>
        {(found) => (
          <div className={styles.cards}>
            <Card title={t("overview.last")}><LastResult dagId={dagId} found={found} head={head.data} /></Card>
            {head.data?.details.asset_expression
              ? <Card title={t("overview.awaits")}><Awaited dagId={dagId} />{head.data.details.next_dagrun_run_after && <NextRuns dagId={dagId} head={head.data} />}</Card>
              : <Card title={t("overview.next")}><NextRuns dagId={dagId} head={head.data} /></Card>}
            <Card title={t("overview.duration")} wide more={found.columns.length > 0 && <Link to="/dags/$dagId/runs" params={{ dagId }} className="small">{t("overview.ofRuns", { count: found.columns.length })}</Link>}>
              <Trend dagId={dagId} runs={found.columns.map((one) => one.run)} usual={head.data?.usual ?? null} />
            </Card>
            <Card title={t("overview.failing")} more={found.columns.length > 0 && <span className="muted small">{t("overview.inLast", { count: found.columns.length })}</span>}><Failing dagId={dagId} found={found} /></Card>
            <Card title={t("overview.warnings")}><Warnings dagId={dagId} head={head.data} /></Card>
            {head.data && <Card title={t("overview.about")} wide><About details={head.data.details} /></Card>}
          </div>
        )}
      </Loaded>
    </div>
  );
}

function Card({ title, more, wide = false, children }: { title: string; more?: ReactNode; wide?: boolean; children: ReactNode }) {
  return (
    <section className={styles.card} data-wide={wide || undefined} aria-label={title}>
      <header className={styles.cardHead}><h2 className="grow">{title}</h2>{more}</header>
      {children}
    </section>
  );
}

function RunLink({ dagId, run, children }: { dagId: string; run: { run_id: string }; children: ReactNode }) {
  return <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId: run.run_id }}>{children}</Link>;
}

function LastResult({ dagId, found, head }: { dagId: string; found: Window; head: Schemas["PageDagHead"] | undefined }) {
  const t = useText();
  const runs = found.columns.map((one) => one.run);
  const newest = runs.at(-1);
  if (!newest) {
    return (
      <div className={styles.none}>
        <Rocket size={20} aria-hidden />
        <p>{t("overview.never")}</p>
      </div>
    );
  }
  const ended = (state: string): CellsRun | undefined => runs.findLast((one) => one.state === state);
  const success = ended("success"), failed = ended("failed");
  const unfinished = runs.filter((one) => one.state === "running" || one.state === "queued");
  const failures = newest.totals[found.states.indexOf("failed")] ?? 0;
  return (
    <>
      <div className={styles.result}>
        <StateIcon state={newest.state} size={32} decorative />
        <div className="grow">
          <p className={styles.resultState}><RunLink dagId={dagId} run={newest}>{stateWord(newest.state)}</RunLink></p>
          <p className="muted cut" title={newest.run_id}><TimeText at={newest.run_after} precision="minute" zoned /> · {runTypeWord(newest.run_type)}</p>
        </div>
        <div className={styles.resultDuration}>
          <p className={styles.resultState}>{newest.start_date ? <DurationText start={newest.start_date} end={newest.end_date} /> : "–"}</p>
          {head?.usual && <p className="muted small">{t("overview.usual", { duration: durationText(head.usual.median) })}</p>}
        </div>
      </div>
      <dl className={styles.facts}>
        {failures > 0 && (
          <>
            <dt>{t("overview.failedTasks")}</dt>
            <dd><Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId: newest.run_id }} search={{ state: "failed" }} className="danger figures">{formatNumber(failures)}</Link></dd>
          </>
        )}
        <dt>{t("overview.lastSuccess")}</dt>
        <dd>{success ? <RunLink dagId={dagId} run={success}><AgoText at={success.end_date ?? success.run_after} /></RunLink> : <span className="muted">{t("overview.notInLast", { count: runs.length })}</span>}</dd>
        <dt>{t("overview.lastFailure")}</dt>
        <dd>{failed ? <RunLink dagId={dagId} run={failed}><AgoText at={failed.end_date ?? failed.run_after} /></RunLink> : <span className="muted">{t("overview.notInLast", { count: runs.length })}</span>}</dd>
        <dt>{t("overview.unfinished")}</dt>
        <dd className={styles.chips}>
          {unfinished.length === 0 ? <span className="muted">{t("common.none")}</span> : unfinished.slice(-4).map((one) => <RunLink key={one.run_id} dagId={dagId} run={one}><StateChip state={one.state} /></RunLink>)}
          {unfinished.length > 4 && <Link to="/dags/$dagId/runs" params={{ dagId }} search={{ state: "running" }} className="figures">+{formatNumber(unfinished.length - 4)}</Link>}
        </dd>
      </dl>
    </>
  );
}

function NextRuns({ dagId, head }: { dagId: string; head: Schemas["PageDagHead"] | undefined }) {
  const t = useText();
  const zone = useZone();
  const paused = head?.details.is_paused ?? false;
  const query = useQuery({
    ...live(["dag", dagId, "next-runs", zone], [dagTopic(dagId)], (signal) =>
      read(api.GET("/api/tradewind/v1/dags/{dag_id}/calendar", { params: { path: { dag_id: dagId }, query: { timezone: zone } }, signal }))),
    enabled: head !== undefined && !paused,
  });
  if (!head) return null;
  if (paused) return <div className={styles.none}><p>{t("overview.paused")}</p></div>;
  return (
    <Loaded query={query} lines={3}>
      {({ next_runs: next, planned_known: known }) => (
        <>
          <ol className={styles.list}>
            {next.slice(0, NEXT).map((at) => (
              <li key={at}><i className={styles.hollow} aria-hidden /><TimeText at={at} precision="minute" zoned /><span className="grow" /><span className="muted"><DueText at={at} /></span></li>
            ))}
          </ol>
          {next.length === 0 && <div className={styles.none}><p>{known ? (scheduleText(head) ?? t("overview.noNext")) : t("overview.noScheduler")}</p></div>}
          {next.length > 0 && <p className="muted small">{scheduleText(head)} <Link to="/dags/$dagId/calendar" params={{ dagId }}>{t("overview.calendar")}</Link></p>}
        </>
      )}
    </Loaded>
  );
}

const CHART = 150;

function Trend({ dagId, runs, usual }: { dagId: string; runs: readonly CellsRun[]; usual: Schemas["UsualDuration"] | null }) {
  const t = useText();
  const zone = useZone();
  const now = useNow();
  const took = runs.map(runSeconds);
  const steps = axisSteps(Math.max(0, usual?.median ?? 0, ...took.map((one) => one ?? 0)));
  const top = steps.at(-1) ?? 1;
  if (!took.some((one) => one !== null)) return <div className={styles.none}><p>{t("overview.noRuns")}</p></div>;
  const slot = 100 / Math.max(RUNS, runs.length), from = 100 - slot * runs.length;
  const y = (seconds: number): number => CHART - (seconds / top) * (CHART - 8);
  const labels = [0, Math.floor(runs.length / 2), runs.length - 1].filter((one, at, all) => all.indexOf(one) === at && (at === 0 || one - (all[at - 1] ?? 0) > 2));
  return (
    <div className={styles.trend}>
      <div className={styles.axis} aria-hidden>{[0, ...steps].map((one) => <span key={one} style={{ top: y(one) }}>{one ? durationText(one) : "0"}</span>)}</div>
      <div className={styles.plot}>
        <svg width="100%" height={CHART + 18} role="group" aria-label={t("overview.duration")}>
          {[0, ...steps].map((one) => <line key={one} x1="0" x2="100%" y1={y(one)} y2={y(one)} className={styles.gridLine} />)}
          {usual && <line x1="0" x2="100%" y1={y(usual.median)} y2={y(usual.median)} className={styles.usual}><title>{t("overview.usual", { duration: durationText(usual.median) })}</title></line>}
          {runs.map((run, at) => {
            const seconds = took[at] ?? null;
            const state = stateOf(run.state);
            const soFar = seconds ?? (run.start_date && !run.end_date ? Math.max(0, (now - Date.parse(run.start_date)) / 1000) : null);
            const text = [momentText(run.run_after, zone, "minute"), stateWord(run.state), soFar === null ? "" : durationText(soFar)].filter(Boolean).join(" · ");
            const height = soFar === null ? 12 : Math.min(CHART, Math.max(3, CHART - y(soFar)));
            return (
              <Link key={run.run_id} to="/dags/$dagId/runs/$runId" params={{ dagId, runId: run.run_id }} aria-label={text} className={styles.bar}>
                <title>{text}</title>
                <rect x={`${from + slot * at}%`} width={`${slot}%`} y="0" height={CHART + 18} className={styles.hit} />
                <rect x={`${from + slot * (at + 0.16)}%`} width={`${slot * 0.68}%`} y={CHART - height} height={height} rx="2" style={{ fill: seconds === null ? "none" : stateColour(state), stroke: stateColour(state) }} data-open={seconds === null || undefined} />
                {state !== "success" && <svg x={`${from + slot * (at + 0.5)}%`} y={CHART + 3} overflow="visible"><g transform="translate(-7 0)"><StateIcon state={run.state} size={14} decorative /></g></svg>}
              </Link>
            );
          })}
        </svg>
        <div className={styles.dates} aria-hidden>
          {labels.map((at) => <span key={at} {...(at === runs.length - 1 ? { "data-edge": "end" } : { style: { left: `${from + slot * (at + 0.5)}%` } })}>{momentText(runs[at]?.run_after ?? "", zone, "day").slice(5)}</span>)}
        </div>
      </div>
    </div>
  );
}

function Failing({ dagId, found }: { dagId: string; found: Window }) {
  const t = useText();
  const failed = found.states.indexOf("failed");
  const any = found.columns.some((one) => (one.run.totals[failed] ?? 0) > 0);
  const structure = useQuery({ ...structureQuery(dagId), enabled: any });
  if (!any) return <div className={styles.none}><CircleCheck size={20} aria-hidden /><p>{t("overview.nothingFailed")}</p></div>;
  return (
    <Loaded query={structure} lines={3}>
      {(shape) => {
        const tasks = failingTasks(found.columns, shape, found.states);
        const most = tasks[0]?.runs ?? 1;
        return (
          <ul className={styles.list}>
            {tasks.map((one) => (
              <li key={one.row}>
                <Link to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId: one.lastRunId, taskId: shape.ids[one.row] ?? "" }} className="cut grow" title={shape.ids[one.row]}>{nameOf(shape, one.row)}</Link>
                <span className={styles.meter} aria-hidden><i style={{ width: `${(one.runs / most) * 100}%` }} /></span>
                <Link to="/dags/$dagId/grid" params={{ dagId }} search={{ task: shape.ids[one.row] ?? "" }} className={`${styles.number} figures`}>{t("overview.runs", { count: one.runs })}</Link>
              </li>
            ))}
          </ul>
        );
      }}
    </Loaded>
  );
}

function Warnings({ dagId, head }: { dagId: string; head: Schemas["PageDagHead"] | undefined }) {
  const t = useText();
  if (!head) return null;
  const { details, warnings, definition_warnings } = head;
  const found: { id: string; text: ReactNode; bad?: boolean }[] = [
    ...(details.has_import_errors ? [{ id: "import", bad: true, text: <>{t("overview.importError")} <Link to="/dags/$dagId/code" params={{ dagId }}>{t("overview.showCode")}</Link></> }] : []),
    ...(details.is_stale ? [{ id: "stale", bad: true, text: t("overview.stale") }] : []),
    ...warnings.map((one) => ({ id: one.warning_type, text: one.message })),
    ...definition_warnings.map((one) => ({ id: `definition ${one}`, text: storedText(one) })),
  ];
  if (!found.length) return <div className={styles.none}><CircleCheck size={20} aria-hidden /><p>{t("overview.noWarnings")}</p></div>;
  return (
    <ul className={styles.warnings}>
      {found.map((one) => <li key={one.id} data-bad={one.bad || undefined}><TriangleAlert size={14} aria-hidden /><span className="grow wrap">{one.text}</span></li>)}
    </ul>
  );
}

function About({ details }: { details: Schemas["DagDetailsView"] }) {
  const t = useText();
  return (
    <div className={styles.about}>
      <p className={details.description ? "wrap" : "muted"}>{details.description ?? t("overview.noDescription")}</p>
      <div className={styles.chips}>
        {details.owners.map((one) => <Link key={one} to="/dags" search={{ owner: one }} className={styles.chip}>{one}</Link>)}
        {details.tags.map((one) => <Link key={one.name} to="/dags" search={{ tags: one.name }} className={styles.chip}>#{one.name}</Link>)}
      </div>
      <div className="row">
        <LinkButton compact to="/dags/$dagId/code" params={{ dagId: details.dag_id }}>{t("overview.showCode")}</LinkButton>
        <LinkButton compact to="/dags/$dagId/details" params={{ dagId: details.dag_id }}>{t("overview.allDetails")}</LinkButton>
        <span className="mono muted cut" title={details.fileloc}>{details.relative_fileloc}</span>
      </div>
    </div>
  );
}
