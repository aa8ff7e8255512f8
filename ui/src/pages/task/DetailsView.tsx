// The details of a task instance: where and when it ran, its attempts, its state changes, its neighbours.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { live, taskTopic, tasksTopic } from "../../api/query";
import { formatBytes, useText } from "../../i18n";
import { storedText } from "../../i18n/phrases";
import { Section } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { Loaded } from "../../parts/status";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { stateWord } from "../../state/states";
import { durationText } from "../../time/format";
import { DurationText, TimeText } from "../../time/TimeText";
import { DocText } from "../dag/DocText";
import { NoteEditor } from "./NoteEditor";
import { put } from "./query";
import styles from "./task.module.css";

type PageTask = Schemas["PageTask"];

export function DetailsView({ task }: { task: PageTask }) {
  const t = useText();
  const { instance } = task;
  const cache = useQueryClient();
  const refusal = useRefusal("edit:task_instance");
  async function saveNote(text: string): Promise<void> {
    const body = { note: text || null, include_upstream: false, include_downstream: false, include_future: false, include_past: false };
    const path = { dag_id: instance.dag_id, dag_run_id: instance.dag_run_id, task_id: instance.task_id };
    await read(
      instance.map_index >= 0
        ? api.PATCH("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/{map_index}", { params: { path: { ...path, map_index: instance.map_index } }, body })
        : api.PATCH("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}", { params: { path }, body }),
    );
    await cache.invalidateQueries({ queryKey: ["task", instance.dag_id, instance.dag_run_id, instance.task_id] });
  }
  return (
    <>
      <Section title={t("task.note")}>
        <NoteEditor note={instance.note} refusal={refusal} save={saveNote} />
      </Section>
      {task.doc && (
        <Section title={t("task.doc")}>
          <DocText text={task.doc} />
        </Section>
      )}
      <Section title={t("task.instance")}>
        <dl className={parts.definition}>
          <Fact name={t("common.state")}><StateChip state={instance.state} /></Fact>
          <Fact name={t("task.operator")}>{task.ui_color && <OperatorColour colour={task.ui_color} />}<code className="mono">{instance.operator_name ?? instance.operator}</code></Fact>
          <Fact name={t("task.queuedAt")}>{instance.queued_when && <TimeText at={instance.queued_when} zoned />}</Fact>
          <Fact name={t("common.started")}>{instance.start_date && <TimeText at={instance.start_date} zoned />}</Fact>
          <Fact name={t("common.ended")}>{instance.end_date && <TimeText at={instance.end_date} zoned />}</Fact>
          <Fact name={t("common.duration")}>{instance.start_date && <DurationText start={instance.start_date} end={instance.end_date} />}</Fact>
          <Fact name={t("task.triesName")}>{instance.try_number ? t("task.triesOf", { number: instance.try_number, most: instance.max_tries + 1 }) : null}</Fact>
          <Fact name={t("task.pool")}>
            <Link to="/pools/$pool" params={{ pool: instance.pool }}>{instance.pool}</Link> <span className="muted">{t("task.slots", { count: instance.pool_slots })}</span>
          </Fact>
          <Fact name={t("task.queue")}>{instance.queue}</Fact>
          <Fact name={t("task.priority")}>{instance.priority_weight}</Fact>
          <Fact name={t("task.executor")}>{instance.executor}</Fact>
          <Fact name={t("task.host")}>{instance.hostname && <span className="mono">{instance.hostname}{instance.pid ? ` · PID ${instance.pid}` : ""}</span>}</Fact>
          <Fact name={t("task.version")}>
            {instance.dag_version && <Link to="/dags/$dagId/code" params={{ dagId: instance.dag_id }} search={{ v: String(instance.dag_version.version_number) }}>v{instance.dag_version.version_number}</Link>}
          </Fact>
          <Fact name={t("task.executorConfig")}>{instance.executor_config !== "{}" && <code className="mono">{instance.executor_config}</code>}</Fact>
        </dl>
      </Section>
      <Section title={t("task.neighbours")}>
        <dl className={parts.definition}>
          <Fact name={t("task.upstream")} always><Tasks ids={task.upstream} instance={instance} /></Fact>
          <Fact name={t("task.downstream")} always><Tasks ids={task.downstream} instance={instance} /></Fact>
        </dl>
      </Section>
      <Section title={t("task.attempts")} more={<span className="muted small">{t("task.attemptsTeach")}</span>}>
        {task.attempts.length === 0 ? <p className="muted">{t("task.attemptsNone")}</p> : <Attempts attempts={task.attempts} />}
      </Section>
      <History instance={instance} />
    </>
  );
}

function Fact({ name, children, always = false }: { name: string; children: ReactNode; always?: boolean }) {
  if (!always && (children === null || children === undefined || children === false || children === "")) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Tasks({ ids, instance }: { ids: readonly string[]; instance: PageTask["instance"] }) {
  const t = useText();
  if (ids.length === 0) return <span className="muted">{t("common.none")}</span>;
  return (
    <span className={styles.neighbours}>
      {ids.map((taskId) => (
        <Link key={taskId} to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId: instance.dag_id, runId: instance.dag_run_id, taskId }} className="cut" title={taskId}>{taskId}</Link>
      ))}
    </span>
  );
}

function Attempts({ attempts }: { attempts: readonly Schemas["AttemptView"][] }) {
  const t = useText();
  return (
    <div className={styles.scroll}>
      <table className={styles.plain}>
        <thead>
          <tr>
            <th>{t("task.try")}</th><th>{t("task.outcome")}</th><th>{t("task.queuedAt")}</th><th>{t("common.started")}</th><th className={styles.right}>{t("common.duration")}</th>
            <th className={styles.right}>{t("task.cpu")}</th><th className={styles.right}>{t("task.memory")}</th><th>{t("task.host")}</th><th>{t("task.exit")}</th><th>{t("task.reason")}</th>
          </tr>
        </thead>
        <tbody>
          {attempts.toReversed().map((one) => (
            <tr key={one.fence}>
              <td className="figures"><Link to="." search={put({ tab: "log", try: String(one.try_number) })}>{one.try_number}</Link></td>
              <td>{one.outcome ? <span className="row"><StateIcon state={one.outcome} decorative size={14} /> {stateWord(one.outcome)}</span> : <span className="muted">{t("task.unfinished")}</span>}</td>
              <td><TimeText at={one.queued_when} /></td>
              <td><TimeText at={one.start_date} /></td>
              <td className={styles.right}>{one.start_date && <DurationText start={one.start_date} end={one.end_date} />}</td>
              <td className={`${styles.right} figures`}>{one.cpu_seconds !== null && durationText(one.cpu_seconds)}</td>
              <td className={`${styles.right} figures`}>{one.peak_memory_bytes !== null && formatBytes(one.peak_memory_bytes)}</td>
              <td className="mono">{one.hostname}{one.pid ? ` · ${one.pid}` : ""}</td>
              <td className="figures">{one.signal ? t("task.signal", { number: one.signal }) : one.exit_code}</td>
              <td className={styles.reason}>{one.reason && storedText(one.reason)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function History({ instance }: { instance: PageTask["instance"] }) {
  const t = useText();
  const { dag_id: dagId, dag_run_id: runId, task_id: taskId, map_index: mapIndex } = instance;
  const query = useQuery(
    live(["history", dagId, runId, taskId, mapIndex], [taskTopic(dagId, runId, taskId, mapIndex), tasksTopic(dagId, runId)], (signal) =>
      read(
        api.GET("/api/tradewind/v1/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/history", {
          params: { path: { dag_id: dagId, dag_run_id: runId, task_id: taskId }, query: { map_index: mapIndex } }, signal,
        }),
      ),
    ),
  );
  return (
    <Section title={t("task.history")}>
      <Loaded query={query} lines={4}>
        {(found) =>
          found.steps.length === 0 ? <p className="muted">{t("task.historyNone")}</p> : (
            <div className={styles.scroll}>
              <table className={styles.plain}>
                <thead>
                  <tr><th>{t("task.at")}</th><th>{t("common.state")}</th><th className={styles.right}>{t("task.lasted")}</th><th>{t("task.cause")}</th></tr>
                </thead>
                <tbody>
                  {found.steps.toReversed().map((one, at) => (
                    <tr key={found.steps.length - at}>
                      <td><TimeText at={one.at} /></td>
                      <td><span className="row"><StateIcon state={one.state} decorative size={14} /> {stateWord(one.state)}</span></td>
                      <td className={styles.right}>{one.lasted !== null && <DurationText seconds={one.lasted} />}</td>
                      <td className={styles.reason}>{storedText(one.cause)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}

/** A swatch in the colour of the operator class. Airflow's `ui_color` is a colour in any form of CSS; anything else shows nothing. */
function OperatorColour({ colour }: { colour: string }) {
  return CSS.supports("color", colour) ? <span className={styles.swatch} style={{ background: colour }} title={`ui_color ${colour}`} data-color={colour} /> : null;
}
