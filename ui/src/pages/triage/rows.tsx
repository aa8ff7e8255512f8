// The rows of the triage page. Each says what is wrong in one line and offers what to do about it.
import { Link, useNavigate } from "@tanstack/react-router";
import { Hourglass, ScrollText, TimerOff } from "lucide-react";
import type { KeyboardEvent, ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc, queries } from "../../api/query";
import { formatNumber, t, useText } from "../../i18n";
import { storedText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { To, ToButton } from "../../parts/To";
import { toast, toastError } from "../../parts/toast";
import { StateIcon } from "../../state/StateIcon";
import { stateWord } from "../../state/states";
import { durationText, momentText } from "../../time/format";
import { useNow } from "../../time/now";
import { AgoText, DurationText, TimeText } from "../../time/TimeText";
import { useZone } from "../../time/zone";
import type { SelectionProps } from "../actions/dialogs";
import type { WhyProps } from "../why/WhyPanel";
import { expectation, type FailedRun, type GroupName } from "./groups";
import styles from "./triage.module.css";

export interface RowActions {
  clear: (selection: Omit<SelectionProps, "onClose">) => void;
  why: (instance: WhyProps) => void;
}

export interface RowProps {
  rowKey: string;
  active: boolean;
  onFocus: () => void;
}

interface FrameProps extends RowProps {
  icon: ReactNode;
  title: ReactNode;
  when?: ReactNode;
  reason: ReactNode;
  more?: ReactNode;
  actions: ReactNode;
  href: string;
}

function Frame({ rowKey, active, onFocus, icon, title, when, reason, more, actions, href }: FrameProps) {
  const navigate = useNavigate();
  return (
    <li
      className={styles.row} data-row={rowKey} data-active={active || undefined} tabIndex={active ? 0 : -1} onFocus={onFocus}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key !== "Enter" || event.target !== event.currentTarget) return;
        event.preventDefault();
        void navigate({ href });
      }}
    >
      <span className={styles.icon}>{icon}</span>
      <div className={styles.text}>
        <p className={styles.title}>{title}</p>
        <p className={styles.reason}>{reason}</p>
        {more && <p className={styles.extra}>{more}</p>}
      </div>
      <span className={styles.when}>{when}</span>
      <span className={styles.actions}>{actions}</span>
    </li>
  );
}

export function GroupIcon({ group }: { group: GroupName }) {
  if (group === "late") return <TimerOff size={16} className={styles.late} aria-hidden />;
  if (group === "blocked") return <Hourglass size={16} className={styles.blocked} aria-hidden />;
  return <StateIcon state={group} decorative />;
}

function taskName(task: string, map: number): string {
  return map < 0 ? task : `${task} [${map}]`;
}

/** The address of a task instance; `map` -1: not mapped. */
function taskHref(dag: string, run: string, task: string, map: number, tab: string): string {
  const search = new URLSearchParams({ tab });
  if (map >= 0) search.set("map", String(map));
  return `/dags/${enc(dag)}/runs/${enc(run)}/tasks/${enc(task)}?${search.toString()}`;
}

function runHref(dag: string, run: string): string {
  return `/dags/${enc(dag)}/runs/${enc(run)}`;
}

function DagLink({ dag }: { dag: string }) {
  return <Link className={`${styles.dag} cut`} to="/dags/$dagId" params={{ dagId: dag }} title={dag}>{dag}</Link>;
}

export function FailedRow({ failed, onClear, ...row }: RowProps & { failed: FailedRun; onClear: () => void }) {
  useText();
  const refusal = useRefusal("edit:task_instance");
  const [first, ...others] = failed.tasks;
  const log = taskHref(failed.dagId, failed.runId, first.task_id, first.map_index, "log");
  const name = taskName(first.task_id, first.map_index);
  const tasks = failed.tasks.map((one) => one.task_id);
  const error = first.error && storedText(first.error);
  return (
    <Frame
      {...row} href={log} icon={<StateIcon state="failed" size={18} />}
      title={<><DagLink dag={failed.dagId} /><To className={`${styles.task} cut`} href={log} title={name}>{name}</To></>}
      when={<><AgoText at={first.end_date ?? failed.runAfter} /><span className="figures">{t("triage.tryOf", { number: first.try_number, most: first.tries })}</span></>}
      reason={error ? <code className="cut" title={error}>{error}</code> : <span>{t("triage.noReason")}</span>}
      more={
        <>
          <To className="cut" href={runHref(failed.dagId, failed.runId)} title={failed.runId}><TimeText at={failed.runAfter} precision="minute" zoned /></To>
          {others.length > 0 && <To href={`${runHref(failed.dagId, failed.runId)}?state=failed`}>{t("triage.moreFailed", { count: others.length })}</To>}
          {failed.upstreamFailed > 0 && (
            <To href={`${runHref(failed.dagId, failed.runId)}?state=upstream_failed`}>
              <StateIcon state="upstream_failed" size={12} decorative /> {t("triage.upstreamFailed", { count: failed.upstreamFailed })}
            </To>
          )}
          {failed.runState !== "failed" && <span>{t("triage.stillRuns", { state: stateWord(failed.runState) })}</span>}
        </>
      }
      actions={
        <>
          <ToButton href={log}><ScrollText size={14} aria-hidden /> {t("triage.log")}</ToButton>
          <Button onPress={onClear} refused={refusal}>{t("common.clear")}</Button>
          <CopyAs
            action={{
              command: commandLine("tradewind", "tasks", "clear", failed.dagId, "--run-id", failed.runId, "--task-regex", `^(${[...new Set(tasks)].join("|")})$`, "--downstream"),
              method: "POST", path: `/api/v2/dags/${enc(failed.dagId)}/clearTaskInstances`,
              body: { dag_run_id: failed.runId, task_ids: [...new Set(tasks)], include_downstream: true, dry_run: false, only_failed: true },
            }}
          />
        </>
      }
    />
  );
}

/** When a run should end, or that there is too little history. */
function useExpected(run: Schemas["TriageRun"]): string {
  const zone = useZone();
  const now = useNow();
  const found = expectation(run, now);
  const clock = (at: string): string => {
    const text = momentText(at, zone, "minute");
    return momentText(now, zone, "day") === text.slice(0, 10) ? text.slice(11) : text;
  };
  switch (found.kind) {
    case "queued": return t("triage.queuedRun");
    case "unknown": return t("triage.tooLittle");
    case "past": return t("triage.pastExpected", { at: clock(found.at) });
    case "moment": return t("triage.likelyAt", { at: clock(found.at) });
    case "range": return t("triage.likely", { from: clock(found.from), to: clock(found.to) });
  }
}

function lateText(run: Schemas["TriageRun"], zone: string): string {
  if (run.late_because === "deadline" && run.deadline_at) {
    const at = momentText(run.deadline_at, zone, "minute");
    return run.deadline ? t("triage.deadline", { name: run.deadline, at }) : t("triage.deadlineNoName", { at });
  }
  if (run.usual && run.elapsed !== null) {
    const elapsed = durationText(run.elapsed), low = durationText(run.usual.low), high = durationText(run.usual.high);
    return low === high ? t("triage.longerOne", { elapsed, low }) : t("triage.longer", { elapsed, low, high });
  }
  return t("triage.lateOther");
}

/** How many tasks of a run are left, with a bar. */
function Progress({ run }: { run: Schemas["TriageRun"] }) {
  if (run.unfinished === null || run.tasks === 0) return null;
  const text = t("triage.tasksLeft", { count: run.unfinished, total: formatNumber(run.tasks) });
  return (
    <To className={styles.progress} href={runHref(run.dag_id, run.run_id)} title={text}>
      <i style={{ width: (96 * (run.tasks - run.unfinished)) / run.tasks }} />
      <span className="figures">{text}</span>
    </To>
  );
}

export function LateRow({ run, ...row }: RowProps & { run: Schemas["TriageRun"] }) {
  useText();
  const zone = useZone();
  const expected = useExpected(run);
  const href = runHref(run.dag_id, run.run_id);
  return (
    <Frame
      {...row} href={href} icon={<GroupIcon group="late" />}
      title={<><DagLink dag={run.dag_id} /><To className={`${styles.task} cut`} href={href} title={run.run_id}><TimeText at={run.run_after} precision="minute" zoned /></To></>}
      reason={<span>{t("triage.lateAnd", { late: lateText(run, zone), expected })}</span>}
      when={<AgoText at={run.start_date ?? run.run_after} />}
      more={<Progress run={run} />}
      actions={<ToButton href={href}>{t("triage.open")}</ToButton>}
    />
  );
}

export function RunningRow({ run, ...row }: RowProps & { run: Schemas["TriageRun"] }) {
  useText();
  const expected = useExpected(run);
  const href = runHref(run.dag_id, run.run_id);
  return (
    <Frame
      {...row} href={href} icon={<StateIcon state={run.state} size={18} />}
      title={<><DagLink dag={run.dag_id} /><To className={`${styles.task} cut`} href={href} title={run.run_id}><TimeText at={run.run_after} precision="minute" zoned /></To></>}
      reason={<span>{expected}</span>}
      when={<DurationText start={run.start_date} />}
      more={<Progress run={run} />}
      actions={<ToButton href={href}>{t("triage.open")}</ToButton>}
    />
  );
}

export function LongestRow({ instance }: { instance: Schemas["TriageInstance"] }) {
  useText();
  const name = instance.task_id === null ? t("triage.wholeRun") : taskName(instance.task_id, instance.map_index);
  const href = instance.task_id === null ? runHref(instance.dag_id, instance.run_id) : taskHref(instance.dag_id, instance.run_id, instance.task_id, instance.map_index, "log");
  return (
    <li className={styles.row} data-slim>
      <span className={styles.icon}><StateIcon state={instance.state ?? "running"} /></span>
      <p className={styles.title}><DagLink dag={instance.dag_id} /><To className={`${styles.task} cut`} href={href} title={name}>{name}</To></p>
      <span className={styles.when}><DurationText start={instance.started_at ?? instance.since} /></span>
      <span className={styles.actions}><ToButton compact href={href}>{t("triage.log")}</ToButton></span>
    </li>
  );
}

function ruleText(block: Schemas["TriageBlock"]): string {
  const name = block.owner;
  switch (block.rule) {
    case "pool": return t("triage.rulePool", { name });
    case "parallelism": return t("triage.ruleParallelism");
    case "paused": return t("triage.rulePaused", { name });
    case "max_active_tasks": return t("triage.ruleRun", { name });
    case "max_active_tasks_all_runs": return t("triage.ruleDag", { name });
    default: return t("triage.ruleTask", { name });
  }
}

const FIRST = 3;

/** A limit, and the first tasks that wait for it. Those of a paused DAG wait for a person, so they are only counted. */
export function BlockedRows({ block, act, ...row }: RowProps & { block: Schemas["TriageBlock"]; act: RowActions }) {
  useText();
  const refusal = useRefusal("edit:dag");
  const paused = block.rule === "paused";
  const first = block.first[0];
  const dag = paused ? (first?.dag_id ?? block.owner) : block.owner;
  const href = block.rule === "pool" ? `/pools/${enc(block.owner)}` : first ? runHref(first.dag_id, first.run_id) : "/dags";
  const text = paused ? t("triage.rulePaused", { name: dag }) : ruleText(block);
  return (
    <>
      <Frame
        {...row} href={href} icon={<GroupIcon group="blocked" />}
        title={<To className={`${styles.dag} cut`} href={href} title={text}>{text}</To>}
        reason={
          <span>
            {paused ? null : block.capacity === null && block.rule === "pool" ? <>{t("triage.missingPool")} · </>
              : block.capacity !== null ? <>{t("triage.used", { used: formatNumber(block.used), capacity: formatNumber(block.capacity) })} · </> : null}
            <To href={href}>{t("triage.waiting", { count: block.waiting })}</To>
          </span>
        }
        when={first ? <AgoText at={first.since} /> : null}
        actions={
          <>
            {paused && <Button refused={refusal} onPress={() => void unpause(dag)}>{t("triage.unpause")}</Button>}
            {paused && <CopyAs action={{ command: commandLine("tradewind", "dags", "unpause", dag), method: "PATCH", path: `/api/v2/dags/${enc(dag)}`, body: { is_paused: false } }} />}
            {!paused && <ToButton href={href}>{t("triage.open")}</ToButton>}
          </>
        }
      />
      {!paused && block.first.slice(0, FIRST).map((one, at) => (
        <li key={`${one.dag_id} ${one.run_id} ${one.task_id} ${one.map_index}`} className={styles.row} data-slim data-inner>
          <span className={styles.icon}><StateIcon state={one.state ?? "scheduled"} size={14} /></span>
          <p className={styles.title}>
            <DagLink dag={one.dag_id} />
            <To
              className={`${styles.task} cut`} title={one.task_id ?? one.run_id}
              href={one.task_id === null ? runHref(one.dag_id, one.run_id) : taskHref(one.dag_id, one.run_id, one.task_id, one.map_index, "why")}
            >
              {one.task_id === null ? t("triage.wholeRun") : taskName(one.task_id, one.map_index)}
            </To>
          </p>
          <span className={styles.when}>{at === 0 ? t("triage.aheadNone") : t("triage.ahead", { count: at })}</span>
          <span className={styles.actions}>
            {one.task_id !== null && (
              <Button compact onPress={() => act.why({ dagId: one.dag_id, runId: one.run_id, taskId: one.task_id ?? "", mapIndex: one.map_index })}>{t("common.why")}</Button>
            )}
          </span>
        </li>
      ))}
      {!paused && block.waiting > FIRST && (
        <li className={styles.row} data-slim data-inner>
          <span className={styles.icon} />
          <To className={styles.title} href={href}>{t("triage.moreWaiting", { count: block.waiting - Math.min(FIRST, block.first.length) })}</To>
        </li>
      )}
    </>
  );
}

async function unpause(dag: string): Promise<void> {
  try {
    await read(api.PATCH("/api/v2/dags/{dag_id}", { params: { path: { dag_id: dag } }, body: { is_paused: false } }));
    toast(t("triage.unpaused", { name: dag }));
    await queries.invalidateQueries({ queryKey: ["triage"] });
  } catch (error) {
    toastError(error);
  }
}
