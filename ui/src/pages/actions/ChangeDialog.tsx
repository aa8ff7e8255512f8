// Clear and mark: options, then the task instances that would change, then a button with their number. The button sends the fingerprint of
// what was shown; if something else would change by then, the server refuses and the list is read again.
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useState } from "react";

import { api, ApiError, read, type Schemas } from "../../api/client";
import { queries } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Dialog } from "../../parts/Dialog";
import { Checkbox, Select, TextField } from "../../parts/fields";
import { ErrorState, Loading, Notice } from "../../parts/status";
import { toast } from "../../parts/toast";
import { StateIcon } from "../../state/StateIcon";
import { BY_URGENCY, stateWord } from "../../state/states";
import { headQuery } from "../dag/query";
import styles from "./actions.module.css";
import type { SelectionProps } from "./props";

type Preview = Schemas["ChangePreview"];
const MARKS = ["success", "failed", "skipped"] as const;
type Mark = (typeof MARKS)[number];
type Scope = "past" | "future" | "upstream" | "downstream";

const DEBOUNCE_MS = 150;

function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

export function ClearDialog(selection: SelectionProps) {
  return <ChangeDialog {...selection} kind="clear" />;
}

export function MarkDialog(selection: SelectionProps) {
  return <ChangeDialog {...selection} kind="mark" />;
}

function ChangeDialog({ dagId, runId, tasks, onClose, kind }: SelectionProps & { kind: "clear" | "mark" }) {
  const t = useText();
  const whole = tasks.length === 0;
  const [scope, setScope] = useState<ReadonlySet<Scope>>(new Set(kind === "clear" && !whole ? ["downstream"] : []));
  const [onlyFailed, setOnlyFailed] = useState(false);
  const [queueRun, setQueueRun] = useState(true);
  const [chosenNewest, setNewest] = useState<boolean | null>(null);
  // Without versions of the bundle, each run follows its DAG file anyway.
  const versioned = useQuery({ ...headQuery(dagId), enabled: kind === "clear" }).data?.details;
  const newest = versioned?.bundle_version ? (chosenNewest ?? versioned.rerun_with_latest_version ?? false) : null;
  const [state, setState] = useState<Mark>("success");
  const [note, setNote] = useState("");
  const shared = {
    run_id: runId, tasks: tasks.map((one) => (typeof one === "string" ? one : ([one[0], one[1]] as [string, number]))), past: scope.has("past"), future: scope.has("future"),
    upstream: scope.has("upstream"), downstream: scope.has("downstream"),
  };
  const chosen = JSON.stringify(kind === "clear" ? { ...shared, only_failed: onlyFailed, queue_run: queueRun, run_on_latest_version: newest } : { ...shared, state });
  const wanted = useSettled(chosen);
  const params = { params: { path: { dag_id: dagId } } };
  const preview = useQuery({
    queryKey: ["preview", kind, dagId, wanted],
    queryFn: ({ signal }) =>
      kind === "clear"
        ? read(api.POST("/api/tradewind/v1/dags/{dag_id}/clear/preview", { ...params, body: JSON.parse(wanted) as Schemas["ClearWanted"], signal }))
        : read(api.POST("/api/tradewind/v1/dags/{dag_id}/mark/preview", { ...params, body: JSON.parse(wanted) as Schemas["MarkWanted"], signal })),
    placeholderData: keepPreviousData, staleTime: 0, gcTime: 0,
  });
  const change = useMutation({
    mutationFn: (shown: Preview) => {
      const confirmed = { ...(JSON.parse(wanted) as object), fingerprint: shown.fingerprint, ...(note ? { note } : {}) };
      return kind === "clear"
        ? read(api.POST("/api/tradewind/v1/dags/{dag_id}/clear", { ...params, body: confirmed as Schemas["ClearConfirmed"] }))
        : read(api.POST("/api/tradewind/v1/dags/{dag_id}/mark", { ...params, body: confirmed as Schemas["MarkConfirmed"] }));
    },
    onSuccess: (done) => {
      toast(t(kind === "clear" ? "actions.cleared" : "actions.marked", { count: done.total, state: stateWord(state) }));
      void queries.invalidateQueries({ predicate: (one) => one.queryKey.includes(dagId) }); // not every change reaches the stream
      onClose();
    },
    onError: (error) => {
      if (error instanceof ApiError && error.status === 409) void preview.refetch();
    },
  });
  // Until the preview of the present options is there, the button does not work: it would do what the former options said.
  const behind = chosen !== wanted || preview.isPlaceholderData;
  const stale = useDeferredValue(behind);
  const shown = preview.data;
  const total = shown?.total ?? 0;
  const title = whole ? t(kind === "clear" ? "actions.clearRun" : "actions.markRun", { run: runId }) : t(kind === "clear" ? "actions.clearTasks" : "actions.markTasks", { task: nameOf(tasks), count: tasks.length });
  const toggle = (one: Scope) => (on: boolean) => setScope(new Set(on ? [...scope, one] : [...scope].filter((other) => other !== one)));
  return (
    <Dialog
      title={title} onClose={onClose} wide
      foot={
        <>
          <CopyAs action={{ command: commandOf(kind, dagId, runId, tasks, scope, onlyFailed, newest, state), method: "POST", path: `/api/tradewind/v1/dags/${encodeURIComponent(dagId)}/${kind}/preview`, body: JSON.parse(wanted) as unknown }} />
          <span className="grow" />
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" pending={change.isPending} refused={!shown || behind ? t("common.loading") : total ? undefined : t("actions.nothing")} onPress={() => shown && change.mutate(shown)}>
            {t(kind === "clear" ? "actions.clearCount" : "actions.markCount", { count: total, state: stateWord(state) })}
          </Button>
        </>
      }
    >
      <div className={styles.options}>
        {kind === "mark" && (
          <Select label={t("actions.newState")} labelled value={state} onChange={setState} choices={MARKS.map((value) => ({ value, label: stateWord(value), icon: <StateIcon state={value} decorative /> }))} />
        )}
        <div className={styles.checks} role="group" aria-label={t("actions.also")}>
          {!whole && <Checkbox selected={scope.has("upstream")} onChange={toggle("upstream")}>{t("actions.upstream")}</Checkbox>}
          {!whole && <Checkbox selected={scope.has("downstream")} onChange={toggle("downstream")}>{t("actions.downstream")}</Checkbox>}
          <Checkbox selected={scope.has("past")} onChange={toggle("past")}>{t("actions.past")}</Checkbox>
          <Checkbox selected={scope.has("future")} onChange={toggle("future")}>{t("actions.future")}</Checkbox>
          {kind === "clear" && <Checkbox selected={onlyFailed} onChange={setOnlyFailed}>{t("actions.onlyFailed")}</Checkbox>}
          {kind === "clear" && <Checkbox selected={queueRun} onChange={setQueueRun}>{t("actions.queueRun")}</Checkbox>}
          {newest !== null && <Checkbox selected={newest} onChange={setNewest}>{t("actions.newestVersion")}</Checkbox>}
        </div>
        <TextField label={t("actions.note")} value={note} onChange={setNote} hint={t("actions.noteHint")} />
      </div>
      {change.error && <ErrorState error={change.error} />}
      {preview.error && <ErrorState error={preview.error} retry={() => void preview.refetch()} />}
      {shown ? <Changes preview={shown} kind={kind} stale={stale} /> : preview.error ? null : <Loading lines={5} />}
    </Dialog>
  );
}

function nameOf(tasks: SelectionProps["tasks"]): string {
  const [first] = tasks;
  if (first === undefined) return "";
  return typeof first === "string" ? first : `${first[0]}[${first[1]}]`;
}

function Changes({ preview, kind, stale }: { preview: Preview; kind: "clear" | "mark"; stale: boolean }) {
  const t = useText();
  if (!preview.total) return <Notice>{t(kind === "clear" ? "actions.nothingToClear" : "actions.nothingToMark")}</Notice>;
  return (
    <section className={styles.changes} data-stale={stale || undefined} aria-live="polite">
      <h3 id="changes">{t(kind === "clear" ? "actions.willRun" : "actions.willChange", { count: preview.total, runs: preview.runs })}</h3>
      <ul className={styles.states}>
        {BY_URGENCY.filter((state) => preview.by_state[state]).map((state) => (
          <li key={state}><StateIcon state={state} decorative /> {stateWord(state)} <b className="figures">{formatNumber(preview.by_state[state] ?? 0)}</b></li>
        ))}
      </ul>
      <ul className={styles.list} tabIndex={0} aria-labelledby="changes">
        {preview.task_instances.map((one) => (
          <li key={`${one.dag_id}/${one.run_id}/${one.task_id}/${one.map_index}`}>
            <StateIcon state={one.state} />
            <span className="cut" title={one.task_id}>{one.task_id}{one.map_index >= 0 ? ` [${one.map_index}]` : ""}</span>
            {preview.runs > 1 && <span className="muted mono cut" title={one.run_id}>{one.run_id}</span>}
          </li>
        ))}
      </ul>
      {preview.total > preview.task_instances.length && <p className="muted">{t("actions.andMore", { count: preview.total - preview.task_instances.length })}</p>}
    </section>
  );
}

/** A regular expression that matches exactly these task ids. */
function exactly(tasks: SelectionProps["tasks"]): string {
  const ids = [...new Set(tasks.map((one) => (typeof one === "string" ? one : one[0])))].map((id) => id.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return ids.length === 1 ? `^${ids[0] ?? ""}$` : `^(${ids.join("|")})$`;
}

function commandOf(kind: "clear" | "mark", dagId: string, runId: string, tasks: SelectionProps["tasks"], scope: ReadonlySet<Scope>, onlyFailed: boolean, newest: boolean | null, state: Mark): string | undefined {
  const flags = ["upstream", "downstream", "past", "future"].filter((one) => scope.has(one as Scope)).map((one) => `--${one}`);
  if (kind === "clear") return commandLine("tradewind", "tasks", "clear", dagId, "--run-id", runId, tasks.length > 0 && "--task-regex", tasks.length > 0 && exactly(tasks), ...flags, onlyFailed && "--only-failed", newest !== null && (newest ? "--latest-version" : "--own-version"));
  const [only] = tasks;
  if (tasks.length !== 1 || only === undefined) return undefined;
  return commandLine("tradewind", "tasks", "mark", dagId, typeof only === "string" ? only : only[0], runId, state, ...flags);
}
