// Clears, marks or deletes selected runs, after it has listed them and what changes.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, read } from "../../api/client";
import { enc, queries } from "../../api/query";
import { t, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { CopyAs } from "../../parts/CopyAs";
import { Dialog } from "../../parts/Dialog";
import { Checkbox } from "../../parts/fields";
import { ErrorState, errorText, Notice } from "../../parts/status";
import { toast } from "../../parts/toast";
import { StateIcon } from "../../state/StateIcon";
import { stateWord } from "../../state/states";
import { TimeText } from "../../time/TimeText";
import type { Run } from "./query";
import styles from "./runs.module.css";

export type BulkAction = "clear" | "success" | "failed" | "delete";

const SHOWN = 8;

interface Props {
  action: BulkAction;
  dagId: string;
  runs: readonly Run[];
  onClose: (done: boolean) => void;
}

function bodyOf(action: BulkAction, runs: readonly Run[], onlyFailed: boolean): { method: string; path: string; body: unknown } {
  const entities = runs.map((run) => ({ dag_id: run.dag_id, dag_run_id: run.dag_run_id }));
  if (action === "clear") return { method: "POST", path: "clearDagRuns", body: { dry_run: false, only_failed: onlyFailed, dag_runs: entities } };
  if (action === "delete") return { method: "PATCH", path: "dagRuns", body: { actions: [{ action: "delete", entities }] } };
  return { method: "PATCH", path: "dagRuns", body: { actions: [{ action: "update", entities: entities.map((one) => ({ ...one, state: action })) }] } };
}

export function BulkDialog({ action, dagId, runs, onClose }: Props) {
  useText();
  const [onlyFailed, setOnlyFailed] = useState(false);
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState("");
  const params = { path: { dag_id: dagId } };
  const entities = runs.map((run) => ({ dag_id: run.dag_id, dag_run_id: run.dag_run_id }));
  const preview = useQuery({
    queryKey: ["clear-runs", dagId, entities, onlyFailed],
    queryFn: ({ signal }) => read(api.POST("/api/v2/dags/{dag_id}/clearDagRuns", { signal, params, body: { dry_run: true, only_failed: onlyFailed, only_new: false, dag_runs: entities } })),
    enabled: action === "clear",
    staleTime: 0,
    placeholderData: keepPreviousData,
  });
  const tasks = preview.data?.total_entries ?? 0;

  async function send(): Promise<void> {
    setPending(true);
    setProblem("");
    try {
      let failed = 0, reason = "";
      if (action === "clear") {
        await read(api.POST("/api/v2/dags/{dag_id}/clearDagRuns", { params, body: { dry_run: false, only_failed: onlyFailed, only_new: false, dag_runs: entities } }));
      } else {
        const done = await read(
          action === "delete"
            ? api.PATCH("/api/v2/dags/{dag_id}/dagRuns", { params, body: { actions: [{ action: "delete", entities, action_on_non_existence: "fail" }] } })
            : api.PATCH("/api/v2/dags/{dag_id}/dagRuns", {
                params, body: { actions: [{ action: "update", entities: entities.map((one) => ({ ...one, state: action })), action_on_non_existence: "fail" }] },
              }),
        );
        const errors = (done.update ?? done.delete)?.errors ?? [];
        failed = errors.length;
        reason = (errors[0] as { error?: string } | undefined)?.error ?? "";
      }
      await queries.invalidateQueries({ queryKey: ["runs"] });
      if (failed) {
        setProblem(t("runs.someFailed", { count: failed, reason }));
        setPending(false);
        return;
      }
      toast(t("runs.done", { count: runs.length }));
      onClose(true);
    } catch (error) {
      setProblem(errorText(error));
      setPending(false);
    }
  }

  const state = action === "success" || action === "failed" ? stateWord(action) : "";
  const copied = bodyOf(action, runs, onlyFailed);
  return (
    <Dialog
      title={action === "clear" ? t("runs.clearTitle") : action === "delete" ? t("runs.deleteTitle") : t("runs.markTitle", { state })}
      onClose={() => onClose(false)}
      foot={
        <>
          <CopyAs action={{ method: copied.method, path: `/api/v2/dags/${dagId === "~" ? "~" : enc(dagId)}/${copied.path}`, body: copied.body }} />
          <Button onPress={() => onClose(false)}>{t("common.cancel")}</Button>
          <Button
            look={action === "delete" ? "danger" : "primary"} pending={pending} onPress={() => void send()}
            refused={action === "clear" && tasks === 0 ? t("runs.clearNone") : undefined}
          >
            {action === "clear" ? t("runs.doClear", { count: tasks }) : action === "delete" ? t("runs.doDelete", { count: runs.length }) : t("runs.doMark", { count: runs.length })}
          </Button>
        </>
      }
    >
      {action === "clear" && <Checkbox selected={onlyFailed} onChange={setOnlyFailed}>{t("runs.onlyFailed")}</Checkbox>}
      <p className={styles.what} aria-live="polite">
        {action === "clear" ? (preview.data && tasks === 0 ? t("runs.clearNone") : t("runs.clearText", { tasks, runs: runs.length }))
          : action === "delete" ? t("runs.deleteText", { runs: runs.length }) : t("runs.markText", { runs: runs.length, state })}
      </p>
      {preview.error && <ErrorState error={preview.error} retry={() => void preview.refetch()} />}
      <ul className={styles.listed}>
        {runs.slice(0, SHOWN).map((run) => (
          <li key={`${run.dag_id} ${run.dag_run_id}`}>
            <StateIcon state={run.state} /> <span className="cut" title={run.dag_id}>{run.dag_id}</span> <TimeText at={run.run_after} precision="minute" zoned />
          </li>
        ))}
        {runs.length > SHOWN && <li className="muted">{t("runs.andMore", { count: runs.length - SHOWN })}</li>}
      </ul>
      {problem && <Notice>{problem}</Notice>}
    </Dialog>
  );
}
