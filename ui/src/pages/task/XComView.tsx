// The XComs of a task instance: the keys with their sizes, and the value of the chosen one. Values are read one at a time.
import { useQuery } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import { Link } from "@tanstack/react-router";

import { useAddress } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { live, taskTopic, tasksTopic } from "../../api/query";
import { formatBytes, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs, copyText } from "../../parts/CopyAs";
import { EmptyState, Loaded } from "../../parts/status";
import { AgoText } from "../../time/TimeText";
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

function Value({ dagId, runId, taskId, mapIndex, of }: Omit<Props, "keys"> & { of: Schemas["XComKeyView"] }) {
  const t = useText();
  const query = useQuery(
    live(["xcom", dagId, runId, taskId, mapIndex, of.key, of.timestamp], [taskTopic(dagId, runId, taskId, mapIndex), tasksTopic(dagId, runId)], (signal) =>
      read(
        api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries/{xcom_key}", {
          params: { path: { dag_id: dagId, dag_run_id: runId, task_id: taskId, xcom_key: of.key }, query: { map_index: mapIndex } }, signal,
        }),
      ),
    ),
  );
  const e = encodeURIComponent;
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
                <Button look="quiet" compact icon label={t("task.copyValue")} onPress={() => void copyText(text)}><Copy size={14} /></Button>
                <CopyAs
                  compact
                  action={{
                    command: commandLine("tradewind", "xcom", "get", dagId, taskId, runId, "--key", of.key, mapIndex >= 0 && "--map-index", mapIndex >= 0 && String(mapIndex)), method: "GET",
                    path: `/api/v2/dags/${e(dagId)}/dagRuns/${e(runId)}/taskInstances/${e(taskId)}/xcomEntries/${e(of.key)}${mapIndex >= 0 ? `?map_index=${mapIndex}` : ""}`,
                  }}
                />
              </header>
              <JsonTree value={value} />
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
