// One pool: who holds its slots, and who waits, in the order in which they start.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Pencil, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import type { Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { Page, Section, Slash } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { Loaded } from "../../parts/status";
import { To } from "../../parts/To";
import { StateIcon } from "../../state/StateIcon";
import { AgoText } from "../../time/TimeText";
import { PoolBar } from "./PoolBar";
import { DeletePool, PoolSheet } from "./PoolSheet";
import styles from "./pools.module.css";
import { poolQuery } from "./query";

export default function PoolPage() {
  const t = useText();
  const { pool: name } = useParams({ from: "/shell/pools/$pool" });
  const navigate = useNavigate();
  const [deleted, setDeleted] = useState(false);
  // A pool that the user has just deleted is not requested again while the page changes.
  const query = useQuery({ ...poolQuery(name), enabled: !deleted });
  const [dialog, setDialog] = useState<"edit" | "delete" | null>(null);
  const refusal = useRefusal("edit:pool");
  const data = query.data;
  return (
    <Page
      title={name} name={name} crumbs={<><Link to="/pools">{t("pools.title")}</Link><Slash /></>} facts={data ? <Facts data={data} /> : <span>&nbsp;</span>}
      actions={
        <>
          <Button refused={name === "default_pool" ? t("pools.defaultPool") : refusal} look="danger" onPress={() => setDialog("delete")}><Trash2 size={14} aria-hidden /> {t("common.delete")}</Button>
          <Button refused={refusal ?? (data ? undefined : t("common.loading"))} look="primary" onPress={() => setDialog("edit")}><Pencil size={14} aria-hidden /> {t("common.edit")}</Button>
        </>
      }
    >
      <Loaded query={query}>
        {(found) => (
          <>
            <Use data={found} />
            <div className={styles.columns}>
              <Section title={t("pools.holders")} more={<Shown shown={found.holders.length} total={found.holder_count} text={t("pools.holdersOf", { shown: found.holders.length, total: formatNumber(found.holder_count) })} />}>
                <Holders rows={found.holders} tab="log" empty={<p className="muted">{t("pools.noHolders")}</p>} />
              </Section>
              <Section title={t("pools.waitingList")} more={<Shown shown={found.waiting.length} total={found.waiting_count} text={t("pools.waitingOf", { shown: found.waiting.length, total: formatNumber(found.waiting_count) })} />}>
                <Holders rows={found.waiting} tab="why" empty={<><p className="muted">{t("pools.noWaiting")}</p><p className="muted small">{t("pools.noWaitingHint", { name })}</p></>} />
              </Section>
            </div>
          </>
        )}
      </Loaded>
      {dialog === "edit" && data && <PoolSheet pool={data} onClose={() => setDialog(null)} />}
      {dialog === "delete" && (
        <DeletePool
          name={name} holders={data?.holder_count ?? 0} waiting={data?.waiting_count ?? 0}
          onDeleted={() => setDeleted(true)}
          onClose={(done) => {
            setDialog(null);
            if (done) void navigate({ to: "/pools" });
          }}
        />
      )}
    </Page>
  );
}

function Shown({ shown, total, text }: { shown: number; total: number; text: string }) {
  return <span className="muted figures">{shown < total ? text : formatNumber(total)}</span>;
}

function Facts({ data }: { data: Schemas["PoolUse"] }) {
  const t = useText();
  return (
    <>
      {data.description && <span className="cut" title={data.description}>{data.description}</span>}
      {data.include_deferred && <span className={parts.badge}>{t("pools.deferredCounted")}</span>}
    </>
  );
}

/** Slots by state; the holders that are listed say what they do, the rest counts as running. */
function Use({ data }: { data: Schemas["PoolUse"] }) {
  const t = useText();
  const of = (...states: string[]): number => data.holders.filter((one) => states.includes(one.state ?? "")).reduce((sum, one) => sum + one.slots, 0);
  const queued = of("queued"), deferred = of("deferred");
  const open = data.slots - data.used;
  return (
    <div className={styles.use}>
      <p className={styles.big}>
        <b className="figures">{formatNumber(data.used)}</b>
        <span className="muted figures">/ {data.slots < 0 ? t("pools.unlimited") : formatNumber(data.slots)}</span>
        {data.slots >= 0 && <span className={open > 0 ? "muted" : "danger"}>{open > 0 ? t("pools.open", { count: open }) : open === 0 ? t("pools.full") : t("pools.overfull")}</span>}
      </p>
      <PoolBar slots={data.slots} running={data.used - queued - deferred} queued={queued} deferred={deferred} />
    </div>
  );
}

function Holders({ rows, tab, empty }: { rows: readonly Schemas["PoolHolder"][]; tab: string; empty: ReactNode }) {
  const t = useText();
  if (rows.length === 0) return <>{empty}</>;
  return (
    <ol className={styles.holders}>
      {rows.map((one) => {
        const run = `/dags/${enc(one.dag_id)}/runs/${enc(one.run_id)}`;
        const task = one.task_id === null ? t("pools.wholeRun") : one.map_index < 0 ? one.task_id : `${one.task_id} [${one.map_index}]`;
        const href = one.task_id === null ? run : `${run}/tasks/${enc(one.task_id)}?tab=${tab}${one.map_index < 0 ? "" : `&map=${one.map_index}`}`;
        return (
          <li key={`${one.dag_id} ${one.run_id} ${one.task_id} ${one.map_index}`}>
            {one.place !== null && <b className={`${styles.place} figures`}>{one.place}</b>}
            <StateIcon state={one.state} />
            <span className={styles.who}>
              <To className="cut" href={href} title={task}>{task}</To>
              <Link className="muted small cut" to="/dags/$dagId/runs/$runId" params={{ dagId: one.dag_id, runId: one.run_id }} title={`${one.dag_id} ${one.run_id}`}>{one.dag_id}</Link>
            </span>
            <span className={styles.what}>
              {one.slots > 1 && <span>{t("pools.slotsOf", { count: one.slots })}</span>}
              {one.priority_weight !== null && <span>{t("pools.priority", { weight: formatNumber(one.priority_weight) })}</span>}
              <AgoText at={one.started_at ?? one.since} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
