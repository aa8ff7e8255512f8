// Backfills with their progress, and callbacks that failed too often.
import { BellOff, CalendarRange } from "lucide-react";
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { PAGE_SIZE, UNNAMED_MS } from "../../api/pages";
import { enc, queries } from "../../api/query";
import { formatNumber, t as translate, tOr, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs, type CopyableAction } from "../../parts/CopyAs";
import { usePhone } from "../../parts/filters";
import { To } from "../../parts/To";
import { toast, toastError } from "../../parts/toast";
import type { Column } from "../../parts/VirtualTable";
import { AgoText, TimeText } from "../../time/TimeText";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { RemoveDialog } from "./sheets";

type Backfill = Schemas["BackfillView"];
type Callback = Schemas["CallbackView"];

async function loadBackfills(signal: AbortSignal, offset: number) {
  const found = await read(api.GET("/api/v2/backfills", { signal, params: { query: { limit: PAGE_SIZE, offset, order_by: ["-id"] } } }));
  return { rows: found.backfills, total: found.total_entries };
}

async function setPaused(backfill: Backfill, paused: boolean): Promise<void> {
  try {
    const params = { path: { backfill_id: backfill.id } };
    await read(paused ? api.PUT("/api/v2/backfills/{backfill_id}/pause", { params }) : api.PUT("/api/v2/backfills/{backfill_id}/unpause", { params }));
    await queries.invalidateQueries({ queryKey: ["admin", "backfills"] });
  } catch (error) {
    toastError(error);
  }
}

function pauseAction({ id, is_paused }: Backfill): CopyableAction {
  const word = is_paused ? "unpause" : "pause";
  return { command: commandLine("tradewind", "backfill", word, String(id)), method: "PUT", path: `/api/v2/backfills/${id}/${word}` };
}

export function BackfillsSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:run");
  const [cancelled, setCancelled] = useState<Backfill | null>(null);
  const columns = useMemo<Column<Backfill>[]>(() => {
    const found: Column<Backfill>[] = [
      { id: "dag", title: t("admin.dag"), width: "minmax(110px, 1fr)", render: (one) => <To className={styles.strong} href={`/dags/${enc(one.dag_id)}/runs?type=backfill`} title={one.dag_id}>{one.dag_display_name}</To> },
      {
        id: "progress", title: t("admin.progress"), width: phone ? "120px" : "minmax(200px, 1.2fr)",
        render: (one) => (
          <To className={styles.progress} href={`/dags/${enc(one.dag_id)}/runs?type=backfill`} title={t("admin.doneOf", { done: formatNumber(one.handled), total: one.runs })}>
            <span className={styles.meter} aria-hidden><i style={{ width: `${one.runs ? (100 * one.handled) / one.runs : 0}%` }} /></span>
            <span className="figures">{phone ? `${one.handled}/${one.runs}` : t("admin.doneOf", { done: formatNumber(one.handled), total: one.runs })}</span>
          </To>
        ),
      },
      { id: "state", title: t("admin.backfillState"), width: "84px", render: (one) => t(one.completed_at ? "admin.backfill_done" : one.is_paused ? "admin.backfill_paused" : "admin.backfill_running") },
    ];
    if (!phone) {
      found.splice(1, 0, { id: "range", title: t("admin.range"), width: "190px", render: (one) => <><TimeText at={one.from_date} precision="day" /> – <TimeText at={one.to_date} precision="day" /></> });
      found.push({ id: "reprocess", title: t("admin.reprocess"), width: "140px", render: (one) => <span className="muted">{tOr(`admin.reprocess_${one.reprocess_behavior}`, one.reprocess_behavior)}</span> });
    }
    found.push({
      id: "actions", title: <span className="hidden">{t("admin.pause")}</span>, width: phone ? "84px" : "196px", open: true, right: true,
      render: (one) => one.completed_at === null && (
        <span className="row">
          {!phone && <CopyAs compact action={pauseAction(one)} />}
          <Button compact refused={refusal} onPress={() => void setPaused(one, !one.is_paused)}>{t(one.is_paused ? "admin.unpause" : "admin.pause")}</Button>
          {!phone && <Button compact look="danger" refused={refusal} onPress={() => setCancelled(one)}>{t("admin.cancelBackfill")}</Button>}
        </span>
      ),
    });
    return found;
  }, [t, phone, refusal]);
  return (
    <>
      <AdminList
        name="backfills" everyMs={UNNAMED_MS} load={loadBackfills} label={t("admin.backfills")} columns={columns} rowKey={keyOf} text={backfillText}
        empty={{
          icon: <CalendarRange size={28} aria-hidden />, title: t("admin.emptyBackfills"), text: t("admin.emptyBackfillsText"),
          code: "tradewind backfill create --dag-id DAG_ID --from-date 2026-01-01 --to-date 2026-01-31",
        }}
      />
      {cancelled && (
        <RemoveDialog
          name="backfills" title={t("admin.cancelTitle", { dag: cancelled.dag_id })} text={t("admin.cancelText", { count: cancelled.runs - cancelled.handled })} button={t("admin.cancelBackfill")}
          remove={() => read(api.PUT("/api/v2/backfills/{backfill_id}/cancel", { params: { path: { backfill_id: cancelled.id } } }))}
          copy={{ command: commandLine("tradewind", "backfill", "cancel", String(cancelled.id)), method: "PUT", path: `/api/v2/backfills/${cancelled.id}/cancel` }}
          onClose={() => setCancelled(null)}
        />
      )}
    </>
  );
}

const keyOf = (one: { id: number }): string => String(one.id);
const backfillText = (one: Backfill): string => `${one.dag_id} ${one.dag_display_name}`;
const callbackText = (one: Callback): string => `${one.what} ${one.dag_id} ${one.task_id ?? ""} ${one.problem ?? ""}`;

/** The oldest callbacks; the API does not count the others. */
async function loadCallbacks(signal: AbortSignal) {
  const found = await read(api.GET("/api/v2/callbacks", { signal, params: { query: { parked: true, limit: PAGE_SIZE } } }));
  return { rows: found.callbacks, total: found.callbacks.length };
}

async function retry(callback: Callback): Promise<void> {
  try {
    await read(api.POST("/api/v2/callbacks/{callback_id}/retry", { params: { path: { callback_id: callback.id } } }));
    toast(translate("admin.retried"));
    await queries.invalidateQueries({ queryKey: ["admin", "callbacks"] });
  } catch (error) {
    toastError(error);
  }
}

export function CallbacksSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:run");
  const [dropped, setDropped] = useState<Callback | null>(null);
  const columns = useMemo<Column<Callback>[]>(() => {
    const found: Column<Callback>[] = [
      { id: "what", title: t("admin.what"), width: "minmax(100px, 1fr)", render: (one) => <b title={one.what}>{one.what}</b> },
      {
        id: "of", title: t("admin.of"), width: "minmax(100px, 1fr)",
        render: (one) => {
          const run = `/dags/${enc(one.dag_id)}/runs/${enc(one.run_id)}`;
          const text = [one.dag_id, one.task_id].filter(Boolean).join(" · ");
          return <To href={one.task_id === null ? run : `${run}/tasks/${enc(one.task_id)}${one.map_index < 0 ? "" : `?map=${one.map_index}`}`} title={`${text} ${one.run_id}`}>{text}</To>;
        },
      },
    ];
    if (!phone) {
      found.push({ id: "problem", title: t("admin.problem"), width: "minmax(120px, 1.6fr)", render: (one) => <code className="mono danger" title={one.problem ?? ""}>{one.problem}</code> });
      found.push({ id: "tries", title: t("admin.tries"), width: "56px", right: true, render: (one) => one.tries });
      found.push({ id: "since", title: t("admin.since"), width: "100px", right: true, render: (one) => <span className="muted"><AgoText at={one.created_at} /></span> });
    }
    found.push({
      id: "actions", title: <span className="hidden">{t("admin.retry")}</span>, width: phone ? "148px" : "188px", open: true, right: true,
      render: (one) => (
        <span className="row">
          {!phone && <CopyAs compact action={{ command: commandLine("tradewind", "callbacks", "retry", String(one.id)), method: "POST", path: `/api/v2/callbacks/${one.id}/retry` }} />}
          <Button compact refused={refusal} onPress={() => void retry(one)}>{t("admin.retry")}</Button>
          <Button compact look="danger" refused={refusal} onPress={() => setDropped(one)}>{t("common.delete")}</Button>
        </span>
      ),
    });
    return found;
  }, [t, phone, refusal]);
  return (
    <>
      <AdminList
        name="callbacks" everyMs={UNNAMED_MS} load={loadCallbacks} label={t("admin.callbacks")} columns={columns} rowKey={keyOf} text={callbackText}
        empty={{ icon: <BellOff size={28} aria-hidden />, title: t("admin.emptyCallbacks"), text: t("admin.emptyCallbacksText") }}
      />
      {dropped && (
        <RemoveDialog
          name="callbacks" title={t("admin.dropTitle")} text={t("admin.dropText")}
          remove={() => read(api.DELETE("/api/v2/callbacks/{callback_id}", { params: { path: { callback_id: dropped.id } } }))}
          copy={{ command: commandLine("tradewind", "callbacks", "drop", String(dropped.id)), method: "DELETE", path: `/api/v2/callbacks/${dropped.id}` }} onClose={() => setDropped(null)}
        />
      )}
    </>
  );
}
