// A task instance: its log, why it waits, its templates and XComs, and all of its tries. The map index, the try and the tab are the address.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";

import { useAddress, useSetAddress } from "../../address";
import type { Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { useText } from "../../i18n";
import { storedText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Page, Slash } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { EmptyState, Loaded } from "../../parts/status";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { stateWord } from "../../state/states";
import { DurationText, TimeText } from "../../time/TimeText";
import { ClearDialog, MarkDialog } from "../actions/dialogs";
import { WhyPanel } from "../why/WhyPanel";
import { DetailsView } from "./DetailsView";
import { LogView } from "./LogView";
import { MappedList } from "./MappedList";
import { put, taskQuery, type InstanceOf } from "./query";
import { RenderedView } from "./RenderedView";
import styles from "./task.module.css";
import { TaskQuestion } from "./TaskQuestion";
import { XComView } from "./XComView";

const TABS = ["log", "why", "rendered", "xcom", "details"] as const;
type Tab = (typeof TABS)[number];
type PageTask = Schemas["PageTask"];

/** The tab that opens first: the reason of the wait, or the log. */
export function firstTab(state: string | null, started: boolean): Tab {
  if (!started) return "why";
  return state === "deferred" || state === "awaiting_input" || state === "scheduled" || state === null ? "why" : "log";
}

export default function TaskPage() {
  const t = useText();
  const { dagId, runId, taskId } = useParams({ from: "/shell/dags/$dagId/runs/$runId/tasks/$taskId" });
  const address = useAddress();
  const mapIndex = /^-?\d+$/.test(address.map ?? "") ? Number(address.map) : undefined;
  const query = useQuery(taskQuery({ dagId, runId, taskId, mapIndex }));
  const found = query.data;
  const instance = found?.instance;
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  const refusal = useRefusal("edit:task_instance");
  const set = useSetAddress();
  useNamedIndex({ dagId, runId, taskId, mapIndex }, found);
  const shownTry = tryOf(found, address.try);
  useMarkOfOneTry(shownTry?.try_number);
  const tab: Tab | undefined = TABS.find((one) => one === address.tab) ?? (instance ? firstTab(instance.state, instance.start_date !== null) : undefined);
  const index = instance?.map_index ?? mapIndex ?? -1;
  const chosen = useMemo(() => (index >= 0 ? [[taskId, index] as const] : [taskId]), [taskId, index]);
  const keys = useMemo<PageKey[]>(
    () => [
      { key: "c", what: "common.clear", run: () => !refusal && setDialog("clear") },
      { key: "m", what: "common.mark", run: () => !refusal && setDialog("mark") },
      { key: "l", what: "task.tab_log", run: () => set({ tab: "log" }) },
      { key: "w", what: "task.tab_why", run: () => set({ tab: "why" }) },
    ],
    [refusal, set],
  );
  usePageKeys(keys);
  const name = index >= 0 ? `${taskId} [${index}]` : taskId;

  return (
    <Page
      name={`${name} · ${dagId}`}
      title={name}
      crumbs={
        <>
          <Link to="/dags/$dagId" params={{ dagId }} className={styles.crumb} title={dagId}>{dagId}</Link>
          <Slash />
          <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId }} className={styles.crumb} title={runId}>
            {instance ? <TimeText at={instance.run_after} precision="minute" /> : runId}
          </Link>
          <Slash />
        </>
      }
      facts={found && instance ? <Facts found={found} shown={shownTry} /> : <span>&nbsp;</span>}
      actions={
        <>
          <Button onPress={() => setDialog("clear")} refused={refusal}>{t("common.clear")}</Button>
          <Button onPress={() => setDialog("mark")} refused={refusal}>{t("common.mark")}</Button>
          <CopyAs
            action={{
              command: commandLine("tradewind", "tasks", "clear", dagId, "-t", `^${taskId.replaceAll(".", "\\.")}$`, "--run-id", runId, index >= 0 && "--map-index", index >= 0 && String(index)),
              method: "POST", path: `/api/v2/dags/${encodeURIComponent(dagId)}/clearTaskInstances`,
              body: { dry_run: false, dag_run_id: runId, task_ids: [index >= 0 ? [taskId, index] : taskId] },
            }}
          />
        </>
      }
      tabs={
        <nav className={parts.tabs} aria-label={name}>
          {TABS.map((one) => (
            <Link
              key={one} to="." search={put({ tab: one })} hash={true} className={parts.tab} aria-current={one === tab ? "page" : undefined} replace
              data-status={one === tab ? "active" : "inactive"} activeProps={{}}
            >
              {t(`task.tab_${one}`)}
              {one === "xcom" && found && found.xcoms.length > 0 && <span className={`${parts.badge} ${styles.tabCount}`}>{found.xcoms.length}</span>}
            </Link>
          ))}
        </nav>
      }
      fill
    >
      <div className={styles.body}>
        {found && (found.instances > 1 || index >= 0) && <MappedList dagId={dagId} runId={runId} taskId={taskId} mapIndex={index} total={found.instances} state={instance?.state ?? null} />}
        <div className={styles.content} data-scrolls={tab !== "log" || undefined}>
          <Loaded query={query}>
            {(task) => <Content key={task.instance.map_index} tab={tab ?? "log"} task={task} tried={shownTry} />}
          </Loaded>
        </div>
      </div>
      {dialog === "clear" && <ClearDialog dagId={dagId} runId={runId} tasks={chosen} onClose={() => setDialog(null)} />}
      {dialog === "mark" && <MarkDialog dagId={dagId} runId={runId} tasks={chosen} onClose={() => setDialog(null)} />}
    </Page>
  );
}

/** The server chose an instance of a mapped task, because the address names none: it stays, also when others fail later. */
function useNamedIndex(of: InstanceOf, found: PageTask | undefined): void {
  const set = useSetAddress();
  const cache = useQueryClient();
  const chosen = of.mapIndex === undefined && found && found.instance.map_index > 0 ? found.instance.map_index : undefined;
  useEffect(() => {
    if (chosen === undefined) return;
    cache.setQueryData(taskQuery({ ...of, mapIndex: chosen }).queryKey, found);
    set({ map: String(chosen) });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each choice
  }, [chosen]);
}

/** The hash of the address marks a line of one log: when another try is shown, the mark goes. */
function useMarkOfOneTry(shown: number | undefined): void {
  const navigate = useNavigate();
  const before = useRef(shown);
  useEffect(() => {
    if (shown === undefined || shown === before.current) return;
    if (before.current !== undefined) void navigate({ to: ".", search: true, hash: "", replace: true, resetScroll: false });
    before.current = shown;
  }, [navigate, shown]);
}

/** The try that is shown: the wanted one, else the current one. */
function tryOf(found: PageTask | undefined, wanted: string | undefined): Schemas["TriedView"] | undefined {
  return found?.tries.find((one) => String(one.try_number) === wanted) ?? found?.tries.at(-1);
}

function Facts({ found, shown }: { found: PageTask; shown: Schemas["TriedView"] | undefined }) {
  const t = useText();
  const { instance, tries } = found;
  const current = !shown || shown.try_number === instance.try_number;
  const seen = current ? instance : shown;
  return (
    <>
      <StateChip state={seen.state} />
      {tries.length > 0 && (
        <span className={styles.tries} role="group" aria-label={t("task.tries")}>
          {t("task.try")}
          {tries.slice(-9).map((one) => (
            <Link
              key={one.try_number} to="." search={put({ try: one.try_number === instance.try_number ? "" : String(one.try_number) })} replace
              className={styles.tryLink} data-on={one.try_number === shown?.try_number || undefined} activeProps={{}}
              aria-label={t("task.tryState", { number: one.try_number, state: stateWord(one.state) })} aria-current={one.try_number === shown?.try_number ? "true" : undefined}
              title={[t("task.tryState", { number: one.try_number, state: stateWord(one.state) }), one.reason && storedText(one.reason)].filter(Boolean).join(" · ")}
            >
              <StateIcon state={one.state} size={14} decorative /> {one.try_number}
            </Link>
          ))}
          <span className="muted">{t("task.ofTries", { count: instance.max_tries + 1 })}</span>
        </span>
      )}
      {seen.start_date ? (
        <>
          <span><TimeText at={seen.start_date} zoned /></span>
          {seen.state !== "up_for_retry" || seen.end_date ? <span><DurationText start={seen.start_date} end={seen.end_date} /></span> : null}
        </>
      ) : (
        <span>{t("task.notStarted")}</span>
      )}
      {Object.entries(found.extra_links).map(([name, url]) => <ExtraLink key={name} name={name} url={url} />)}
      {seen.start_date && seen.hostname && <span className="cut" title={seen.hostname}>{seen.hostname}</span>}
    </>
  );
}

/** A link that the operator defines: to a page of Tradewind, or to the job that it started. The task may have written the URL: only web
addresses become links. */
function ExtraLink({ name, url }: { name: string; url: string | null }) {
  const t = useText();
  const [, dagId, runId] = url?.match(/^\/dags\/([^/?#]+)(?:\/runs\/([^/?#]+))?$/) ?? [];
  if (dagId && runId) return <Link to="/dags/$dagId/runs/$runId" params={{ dagId: decodeURIComponent(dagId), runId: decodeURIComponent(runId) }}>{name}</Link>;
  if (dagId) return <Link to="/dags/$dagId" params={{ dagId: decodeURIComponent(dagId) }}>{name}</Link>;
  if (!url || !/^https?:\/\//i.test(url)) return <span title={t("task.noLink")}>{name}</span>;
  return <a href={url} target="_blank" rel="noreferrer" className={styles.extraLink} title={url}>{name} <ExternalLink size={12} aria-hidden /></a>;
}

function Content({ tab, task, tried }: { tab: Tab; task: PageTask; tried: Schemas["TriedView"] | undefined }) {
  const t = useText();
  const { instance } = task;
  const where = { dagId: instance.dag_id, runId: instance.dag_run_id, taskId: instance.task_id, mapIndex: instance.map_index };
  switch (tab) {
    case "log":
      return tried && (tried.start_date || tried.queued_when) ? (
        <LogView {...where} tryNumber={tried.try_number} state={tried.try_number === instance.try_number ? instance.state : tried.state} startedAt={tried.start_date} />
      ) : (
        <EmptyState title={t("task.neverStarted")}>
          <Link to="." search={put({ tab: "why" })} replace>{t("common.why")}</Link>
        </EmptyState>
      );
    case "why":
      return (
        <div className={styles.padded}>
          {instance.state === "awaiting_input" && <TaskQuestion {...where} />}
          <WhyPanel {...where} />
        </div>
      );
    case "rendered":
      return <RenderedView fields={instance.rendered_fields} names={task.template_fields} state={instance.state} started={instance.start_date !== null} ended={instance.end_date !== null} />;
    case "xcom":
      return <XComView {...where} keys={task.xcoms} />;
    case "details":
      return <DetailsView task={task} />;
  }
}
