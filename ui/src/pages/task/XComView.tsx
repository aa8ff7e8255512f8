// The XComs of a task instance: the keys with their sizes, and the value of the chosen one, which can be edited. Values are read one
// at a time.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Copy, Trash2 } from "lucide-react";
import { useState } from "react";

import { useAddress } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc, live, queries, taskTopic, tasksTopic } from "../../api/query";
import { formatBytes, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs, copyText } from "../../parts/CopyAs";
import { TextField } from "../../parts/fields";
import { EmptyState, errorText, Loaded } from "../../parts/status";
import { toast } from "../../parts/toast";
import { AgoText } from "../../time/TimeText";
import { RemoveDialog } from "../admin/sheets";
import { JsonTree } from "./JsonTree";
import { put } from "./query";
import styles from "./task.module.css";

interface Props {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
  keys: readonly Schemas["XComKeyView"][];
}

export function XComView({ dagId, runId, taskId, mapIndex, keys }: Props) {
  const t = useText();
  const wanted = useAddress().key;
  const chosen = keys.find((one) => one.key === wanted) ?? keys.find((one) => one.key === "return_value") ?? keys[0];
  if (!chosen) {
    return (
      <EmptyState title={t("task.xcomNone")}>
        <p>{t("task.xcomTeach")}</p>
      </EmptyState>
    );
  }
  return (
    <div className={styles.xcom}>
      <ul className={styles.xcomKeys} aria-label={t("task.tab_xcom")}>
        {keys.map((one) => (
          <li key={one.key}>
            <Link
              to="." search={put({ key: one.key })} replace className={styles.xcomKey} data-on={one.key === chosen.key || undefined}
              aria-current={one.key === chosen.key ? "true" : undefined} activeProps={{}}
            >
              <span className="mono cut" title={one.key}>{one.key}</span>
              <span className="muted small figures">{formatBytes(one.size)} · <AgoText at={one.timestamp} /></span>
            </Link>
          </li>
        ))}
      </ul>
      <Value key={chosen.key} dagId={dagId} runId={runId} taskId={taskId} mapIndex={mapIndex} of={chosen} />
    </div>
  );
}

type ValueProps = Omit<Props, "keys"> & { of: Schemas["XComKeyView"] };

function Value({ dagId, runId, taskId, mapIndex, of }: ValueProps) {
  const t = useText();
  const refusal = useRefusal("edit:task_instance");
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const query = useQuery(
    live(["xcom", dagId, runId, taskId, mapIndex, of.key, of.timestamp], [taskTopic(dagId, runId, taskId, mapIndex), tasksTopic(dagId, runId)], (signal) =>
      read(
        api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries/{xcom_key}", {
          params: { path: { dag_id: dagId, dag_run_id: runId, task_id: taskId, xcom_key: of.key }, query: { map_index: mapIndex } }, signal,
        }),
      ),
    ),
  );
  const mapped = mapIndex >= 0 ? ["--map-index", String(mapIndex)] : [];
  const path = `/api/v2/dags/${enc(dagId)}/dagRuns/${enc(runId)}/taskInstances/${enc(taskId)}/xcomEntries/${enc(of.key)}`;
  const withIndex = mapIndex >= 0 ? `${path}?map_index=${mapIndex}` : path;
  return (
    <section className={styles.xcomValue} aria-label={of.key}>
      <Loaded query={query} lines={4}>
        {(found) => {
          const value = (found as { value: unknown }).value;
          const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
          return (
            <>
              <header>
                <h3 className="mono wrap grow">{of.key}</h3>
                {open !== "edit" && (
                  <>
                    <Button compact refused={refusal} onPress={() => setOpen("edit")}>{t("common.edit")}</Button>
                    <Button look="quiet" compact icon label={t("task.xcomDelete")} refused={refusal} onPress={() => setOpen("delete")}><Trash2 size={14} /></Button>
                  </>
                )}
                <Button look="quiet" compact icon label={t("task.copyValue")} onPress={() => void copyText(text)}><Copy size={14} /></Button>
                <CopyAs compact action={{ command: commandLine("tradewind", "xcom", "get", dagId, taskId, runId, "--key", of.key, ...mapped), method: "GET", path: withIndex }} />
              </header>
              {open === "edit"
                ? <ValueForm dagId={dagId} runId={runId} taskId={taskId} mapIndex={mapIndex} of={of} value={value} path={path} onClose={() => setOpen(null)} />
                : <JsonTree value={value} />}
            </>
          );
        }}
      </Loaded>
      {open === "delete" && (
        <RemoveDialog
          name="xcom" title={t("task.xcomDelete")} text={t("task.xcomDeleteText")} doneText={t("task.xcomDeleted")}
          copy={{ command: commandLine("tradewind", "xcom", "delete", dagId, taskId, runId, "--key", of.key, ...mapped), method: "DELETE", path: withIndex }}
          remove={async () => {
            const params = { path: { dag_id: dagId, dag_run_id: runId, task_id: taskId, xcom_key: of.key }, query: { map_index: mapIndex } };
            await read(api.DELETE("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries/{xcom_key}", { params }));
            await queries.invalidateQueries({ queryKey: ["task", dagId, runId, taskId] });
          }}
          onClose={() => setOpen(null)}
        />
      )}
    </section>
  );
}

/** Whether a value has parts that the server masks. */
function isMasked(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(isMasked);
  return value === "***";
}

function ValueForm({ dagId, runId, taskId, mapIndex, of, value, path, onClose }: ValueProps & { value: unknown; path: string; onClose: () => void }) {
  const t = useText();
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [problem, setProblem] = useState("");
  const [pending, setPending] = useState(false);
  let parsed: unknown;
  let wrong: string | undefined;
  try {
    parsed = JSON.parse(text);
    if (isMasked(parsed)) wrong = t("task.xcomMasked");
  } catch {
    wrong = t("task.notJson");
  }
  async function save(): Promise<void> {
    setPending(true);
    setProblem("");
    try {
      await read(
        api.PATCH("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries/{xcom_key}", {
          params: { path: { dag_id: dagId, dag_run_id: runId, task_id: taskId, xcom_key: of.key } }, body: { value: parsed, map_index: mapIndex },
        }),
      );
      await queries.invalidateQueries({ queryKey: ["task", dagId, runId, taskId] });
      await queries.invalidateQueries({ queryKey: ["xcom", dagId, runId, taskId, mapIndex, of.key] });
      toast(t("task.xcomSaved"));
      onClose();
    } catch (error) {
      setProblem(errorText(error));
      setPending(false);
    }
  }
  return (
    <form
      className={styles.xcomForm}
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong && !pending) void save();
      }}
    >
      <TextField label={t("task.xcomValue")} value={text} onChange={setText} lines={Math.min(20, Math.max(4, text.split("\n").length))} mono autoFocus error={wrong ?? (problem || undefined)} />
      <div className="row">
        <Button type="submit" look="primary" pending={pending} refused={wrong}>{t("common.save")}</Button>
        <Button onPress={onClose}>{t("common.cancel")}</Button>
        <span className="grow" />
        <CopyAs action={{ method: "PATCH", path, body: { value: parsed ?? null, map_index: mapIndex } }} />
      </div>
    </form>
  );
}
