// Why a task instance is not running: every blocker, its holders, the place in the queue, the next event. For an ended one: what decided.
//
// The scheduler answers. It is asked again when the instance, its run, a holder or a pool changes, and at the time of the next event.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, Clock, Hand, Hourglass, ListOrdered } from "lucide-react";
import { Fragment, type ReactElement, type ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { dagTopic, live, runTopic, taskTopic, tasksTopic } from "../../api/query";
import { formatNumber, tOr, useText } from "../../i18n";
import { phraseText, type Phrase } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { commandLine, copyText } from "../../parts/CopyAs";
import parts from "../../parts/parts.module.css";
import { Loaded, Notice } from "../../parts/status";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { UNFINISHED } from "../../state/states";
import { AgoText, TimeText } from "../../time/TimeText";
import { partsOf } from "./sentence";
import styles from "./why.module.css";

export interface WhyProps {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
}

type Explanation = Schemas["Explanation"];
type Blocker = Schemas["BlockerView"];

/** How long before the next question, milliseconds; false: the stream of changes says when. */
function untilNextEvent(found: Explanation | undefined): number | false {
  const at = found?.next_event?.at;
  if (!at) return false;
  return Math.min(Math.max(Date.parse(at) - Date.now() + 500, 2_000), 3_600_000);
}

export function WhyPanel({ dagId, runId, taskId, mapIndex }: WhyProps): ReactElement | null {
  const key = ["why", dagId, runId, taskId, mapIndex];
  const before = useQueryClient().getQueryData<Explanation>(key);
  const holders = (before?.blockers ?? []).flatMap((one) => one.holders);
  const topics = [
    taskTopic(dagId, runId, taskId, mapIndex), tasksTopic(dagId, runId), runTopic(dagId, runId), "pools",
    ...holders.map((one) => (one.task_id === null ? runTopic(one.dag_id ?? "", one.run_id ?? "") : taskTopic(one.dag_id ?? "", one.run_id ?? "", one.task_id, one.map_index))),
  ];
  const query = useQuery({
    ...live(key, topics, (signal) =>
      read(
        api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/why", {
          params: { path: { dag_id: dagId, dag_run_id: runId, task_id: taskId }, query: mapIndex >= 0 ? { map_index: mapIndex } : {} }, signal,
        }),
      ),
    ),
    staleTime: 2_000,
    refetchInterval: (one) => untilNextEvent(one.state.data),
  });
  const command = commandLine("tradewind", "why", dagId, taskId, runId, mapIndex >= 0 && "--map-index", mapIndex >= 0 && String(mapIndex));
  return <Answer query={query} command={command} />;
}

/** The same for a run: why it does not start, or does not end. */
export function RunWhyPanel({ dagId, runId }: { dagId: string; runId: string }): ReactElement {
  const query = useQuery({
    ...live(["why", dagId, runId], [runTopic(dagId, runId), dagTopic(dagId)], (signal) =>
      read(api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/why", { params: { path: { dag_id: dagId, dag_run_id: runId } }, signal })),
    ),
    staleTime: 2_000,
    refetchInterval: (one) => untilNextEvent(one.state.data),
  });
  return <Answer query={query} command={commandLine("tradewind", "why", dagId, "--run-id", runId)} />;
}

function Answer({ query, command }: { query: { data: Explanation | undefined; error: unknown; refetch: () => unknown }; command: string }) {
  const t = useText();
  return (
    <div className={styles.panel}>
      <Loaded query={query} lines={4}>
        {(found) => (
          <>
            <Headline found={found} />
            {found.blockers.length > 0 && (
              <ol className={styles.blockers} aria-label={t("why.reasons")}>
                {found.blockers.map((one, at) => <BlockerCard key={`${one.rule}${at}`} blocker={one} />)}
              </ol>
            )}
            <Facts found={found} />
            {found.callbacks.map((one, at) => <Notice key={one}><Sentence phrase={found.callback_phrases[at]} english={one} /></Notice>)}
            {found.workers?.note && <Notice><Sentence phrase={found.workers.note_phrase} english={found.workers.note} /></Notice>}
          </>
        )}
      </Loaded>
      <p className={styles.teach}>
        <code className="mono cut" title={command}>{command}</code>
        <Button look="quiet" compact onPress={() => void copyText(command)}>{t("common.copyCommand")}</Button>
      </p>
    </div>
  );
}

function Headline({ found }: { found: Explanation }) {
  const t = useText();
  const state = (found.task_id === null ? found.run_state : found.state) ?? "none";
  const text = !UNFINISHED.has(state) ? t("why.ended")
    : state === "running" || state === "restarting" ? t("why.running")
    : found.blockers.length === 0 ? t("why.startsNow")
    : t("why.waits", { count: found.blockers.length });
  return (
    <div className={styles.headline}>
      <StateChip state={state} />
      <h3>{text}</h3>
    </div>
  );
}

function BlockerCard({ blocker }: { blocker: Blocker }) {
  const t = useText();
  const icon = blocker.by_hand ? <Hand size={16} aria-hidden /> : blocker.not_before ? <Clock size={16} aria-hidden /> : <Hourglass size={16} aria-hidden />;
  return (
    <li className={styles.blocker} data-hand={blocker.by_hand || undefined}>
      <span className={styles.icon}>{icon}</span>
      <div className={styles.text}>
        <h4>
          {tOr(`why.rule_${blocker.rule}`, blocker.rule)}
          {blocker.by_hand && <span className={parts.badge}>{t("why.byHand")}</span>}
        </h4>
        <p className="wrap"><Sentence phrase={blocker.reason} english={blocker.sentence} /></p>
        <dl className={parts.definition}>
          {blocker.ends_with && !isMoment(blocker.ends, blocker.ends_with) && <Fact name={t("why.endsWhen")}><Sentence phrase={blocker.ends} english={blocker.ends_with} /></Fact>}
          {blocker.not_before && <Fact name={t("why.notBefore")}><TimeText at={blocker.not_before} zoned /> <span className="muted">(<AgoText at={blocker.not_before} />)</span></Fact>}
        </dl>
        {blocker.holders.length > 0 && (
          <div className={styles.holders}>
            <h5>{t("why.heldBy")}</h5>
            <ul>
              {blocker.holders.map((one, at) => <li key={at}><Holder holder={one} /></li>)}
            </ul>
            {blocker.holder_count > blocker.holders.length && (
              <p className="muted small">{t("why.moreHolders", { count: blocker.holder_count - blocker.holders.length })}</p>
            )}
          </div>
        )}
        {blocker.command && (
          <p className={styles.command}>
            <code className="mono cut" title={blocker.command}>{blocker.command}</code>
            <Button compact onPress={() => void copyText(blocker.command ?? "")}>{t("common.copyCommand")}</Button>
          </p>
        )}
      </div>
    </li>
  );
}

/** Is the event only that a moment has come? The moment is shown by itself. */
function isMoment(event: Phrase | null | undefined, english: string): boolean {
  return event ? event.code === "ends_at" : /^it is \S+$/.test(english);
}

/** A sentence of the server in the language of the page. Its moments are shown in the chosen time zone. */
function Sentence({ phrase, english }: { phrase: Phrase | null | undefined; english: string }) {
  useText();
  return partsOf(phraseText(phrase, english)).map((one, at) => (one.moment ? <TimeText key={at} at={one.text} zoned /> : <Fragment key={at}>{one.text}</Fragment>));
}

function Holder({ holder }: { holder: Schemas["SlotHolder"] }) {
  const since = holder.started_at ?? holder.since;
  return (
    <>
      <StateIcon state={holder.state} />
      <InstanceLink dagId={holder.dag_id} runId={holder.run_id} taskId={holder.task_id} mapIndex={holder.map_index} />
      {since && <span className="muted small"><AgoText at={since} /></span>}
    </>
  );
}

function InstanceLink({ dagId, runId, taskId, mapIndex }: { dagId: string | null; runId: string | null; taskId: string | null; mapIndex: number }) {
  if (!dagId || !runId) return null;
  const name = taskId === null ? `${dagId} ${runId}` : `${dagId}.${taskId}${mapIndex >= 0 ? `[${mapIndex}]` : ""}`;
  return taskId === null ? (
    <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId }} className="cut" title={name}>{name}</Link>
  ) : (
    <Link
      to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId, taskId }} search={mapIndex >= 0 ? { map: String(mapIndex) } : {}} className="cut"
      title={`${name} · ${runId}`}
    >
      {name}
    </Link>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** The place in the queue, what happens next, the workers. */
function Facts({ found }: { found: Explanation }) {
  const t = useText();
  const { position, next_event: next, workers, earliest_start: earliest } = found;
  const waits = UNFINISHED.has((found.task_id === null ? found.run_state : found.state) ?? "none") && found.state !== "running" && found.state !== "restarting";
  if (!waits) return null;
  return (
    <dl className={`${parts.definition} ${styles.facts}`}>
      {position && (
        <Fact name={t("why.queue")}>
          <span className={styles.inline}>
            <ListOrdered size={14} aria-hidden />
            <span className="wrap">
              {position.ahead === 0 ? t("why.firstInQueue") : t("why.ahead", { count: position.ahead })}{" "}
              {position.first && (
                <InstanceLink dagId={position.first.dag_id} runId={position.first.run_id} taskId={position.first.task_id ?? null} mapIndex={position.first.map_index} />
              )}
            </span>
          </span>
        </Fact>
      )}
      {next && (
        <Fact name={t("why.nextEvent")}>
          {!(next.at && isMoment(next.ends, next.event)) && <><Sentence phrase={next.ends} english={next.event} />{next.at && " · "}</>}
          {next.at && <><TimeText at={next.at} zoned /> <span className="muted">(<AgoText at={next.at} />)</span></>}
        </Fact>
      )}
      {earliest && next?.at !== earliest && found.blockers.some((one) => one.not_before) && (
        <Fact name={t("why.earliest")}><TimeText at={earliest} zoned /></Fact>
      )}
      {workers && (
        <Fact name={t("why.workers")}>
          <span className={styles.inline}>
            {workers.attached ? <CircleCheck size={14} aria-hidden /> : null}
            <span className="wrap">
              {workers.attached
                ? t("why.workersUse", { executor: workers.executor, live: formatNumber(workers.live), most: workers.parallelism === null ? "∞" : formatNumber(workers.parallelism) })
                : t("why.noWorker", { executor: workers.executor })}
            </span>
          </span>
        </Fact>
      )}
    </dl>
  );
}
