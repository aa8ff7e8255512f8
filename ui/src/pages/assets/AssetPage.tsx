// One asset: what produces it, what waits for it with which queued events, and its latest events.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { CalendarPlus, Network, Play, Trash2 } from "lucide-react";
import { useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc } from "../../api/query";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Page, Section, Slash } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { Loaded } from "../../parts/status";
import { To, ToButton } from "../../parts/To";
import { toastError } from "../../parts/toast";
import { StateIcon } from "../../state/StateIcon";
import { AgoText, DueText, TimeText } from "../../time/TimeText";
import { NotFoundPage } from "../../shell/fallbacks";
import { Awaited } from "./Awaited";
import { EventDialog, MaterialiseDialog } from "./AssetActions";
import styles from "./assets.module.css";
import { assetKey } from "./graph";
import { assetUseQuery, EVENTS_SHOWN, refreshAssets } from "./query";

export default function AssetPage() {
  const { assetId } = useParams({ from: "/shell/assets/$assetId" });
  return /^\d{1,15}$/.test(assetId) ? <Shown id={Number(assetId)} /> : <NotFoundPage />;
}

function Shown({ id }: { id: number }) {
  const t = useText();
  const query = useQuery(assetUseQuery(id));
  const [dialog, setDialog] = useState<"materialise" | "event" | null>(null);
  const refusal = useRefusal("edit:asset");
  const asset = query.data?.asset;
  return (
    <Page
      title={asset?.name ?? String(id)} crumbs={<><Link to="/assets">{t("assets.title")}</Link><Slash /></>}
      facts={asset ? (
        <>
          <code className="mono cut" title={asset.uri}>{asset.uri}</code>
          <span>{t("assets.group")}: {asset.group}</span>
          <span>{t("assets.lastEvent")}: {asset.last_asset_event.timestamp ? <AgoText at={asset.last_asset_event.timestamp} /> : t("assets.never")}</span>
        </>
      ) : <span>&nbsp;</span>}
      actions={
        <>
          <ToButton href={`/assets?view=graph&focus=${assetKey(id)}`}><Network size={14} aria-hidden /> {t("assets.graph")}</ToButton>
          <Button refused={refusal} onPress={() => setDialog("event")}><CalendarPlus size={14} aria-hidden /> {t("assets.addEvent")}</Button>
          <Button look="primary" refused={refusal ?? (asset?.producing_tasks.length ? undefined : t("assets.noProducer"))} onPress={() => setDialog("materialise")}>
            <Play size={14} aria-hidden /> {t("assets.materialise")}
          </Button>
        </>
      }
    >
      <Loaded query={query}>
        {({ asset: found, queued, events }) => (
          <div className={styles.columns}>
            <div>
              <Section title={t("assets.producers")} more={<span className="muted figures">{found.producing_tasks.length}</span>}>
                {found.producing_tasks.length === 0 ? <p className="muted">{t("assets.noProducers")}</p> : (
                  <TaskList tasks={found.producing_tasks} />
                )}
              </Section>
              <Consumers asset={found} queued={queued} />
              {found.consuming_tasks.length > 0 && (
                <Section title={t("assets.readers")} more={<span className="muted figures">{found.consuming_tasks.length}</span>}>
                  <TaskList tasks={found.consuming_tasks} />
                </Section>
              )}
              <Watchers watchers={found.watchers} />
              {found.aliases.length > 0 && (
                <Section title={t("assets.aliases")}><p className={styles.badges}>{found.aliases.map((one) => <span key={one.id} className={parts.badge}>{one.name}</span>)}</p></Section>
              )}
            </div>
            <Section
              title={t("assets.events")}
              more={events.length === EVENTS_SHOWN && <span className="muted figures">{t("assets.eventsShown", { count: EVENTS_SHOWN })}</span>}
            >
              <Events events={events} />
            </Section>
          </div>
        )}
      </Loaded>
      {dialog === "materialise" && asset && <MaterialiseDialog asset={asset} onClose={() => setDialog(null)} />}
      {dialog === "event" && asset && <EventDialog asset={asset} onClose={() => setDialog(null)} />}
    </Page>
  );
}

function TaskList({ tasks }: { tasks: readonly { dag_id: string; task_id: string }[] }) {
  return (
    <ul className={styles.items}>
      {tasks.map((one) => (
        <li key={`${one.dag_id} ${one.task_id}`}>
          <To className={`${styles.strong} cut`} href={`/dags/${enc(one.dag_id)}`} title={one.dag_id}>{one.dag_id}</To>
          <span className="muted cut" title={one.task_id}>{one.task_id}</span>
        </li>
      ))}
    </ul>
  );
}

async function dropQueued(dag: string, asset: number): Promise<void> {
  try {
    await read(api.DELETE("/api/v2/dags/{dag_id}/assets/{asset_id}/queuedEvents", { params: { path: { dag_id: dag, asset_id: asset } } }));
    await refreshAssets();
  } catch (error) {
    toastError(error);
  }
}

function Consumers({ asset, queued }: { asset: Schemas["AssetView"]; queued: readonly Schemas["QueuedEventView"][] }) {
  const t = useText();
  const refusal = useRefusal("edit:asset");
  return (
    <Section title={t("assets.consumers")} more={<span className="muted figures">{asset.scheduled_dags.length}</span>}>
      {asset.scheduled_dags.length === 0 ? <p className="muted">{t("assets.noConsumers")}</p> : (
        <ul>
          {asset.scheduled_dags.map((one) => <Consumer key={one.dag_id} asset={asset} dagId={one.dag_id} queued={queued.find((event) => event.dag_id === one.dag_id)} refusal={refusal} />)}
        </ul>
      )}
    </Section>
  );
}

function Consumer({ asset, dagId, queued, refusal }: { asset: Schemas["AssetView"]; dagId: string; queued: Schemas["QueuedEventView"] | undefined; refusal: string | undefined }) {
  const t = useText();
  const [open, setOpen] = useState(false);
  return (
    <li className={styles.consumer}>
      <div className={styles.consumerLine}>
        <To className={`${styles.strong} cut`} href={`/dags/${enc(dagId)}`} title={dagId}>{dagId}</To>
        <span className="muted figures">{queued ? <>{t("assets.queuedSince")} <AgoText at={queued.created_at} /></> : t("assets.noneQueued")}</span>
        {queued && (
          <>
            <CopyAs compact action={{ command: commandLine("tradewind", "assets", "clear-queued", dagId, "--name", asset.name), method: "DELETE", path: `/api/v2/dags/${enc(dagId)}/assets/${asset.id}/queuedEvents` }} />
            <Button look="quiet" icon compact label={t("assets.dropQueued")} refused={refusal} onPress={() => void dropQueued(dagId, asset.id)}><Trash2 size={14} /></Button>
          </>
        )}
      </div>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{t("assets.showAwaited")}</summary>
        {open && <Awaited dagId={dagId} />}
      </details>
    </li>
  );
}

function Watchers({ watchers }: { watchers: readonly Schemas["AssetWatcherView"][] }) {
  const t = useText();
  if (watchers.length === 0) return null;
  return (
    <Section title={t("assets.watchers")} more={<span className="muted figures">{watchers.length}</span>}>
      <ul>
        {watchers.map((one) => (
          <li key={`${one.name} ${one.trigger_id}`} className={styles.watcher}>
            <p className={styles.watcherLine}>
              <span className={styles.strong}>{one.name}</span>
              {one.failures > 0 && <span className="danger">{t("assets.watcherFailed", { count: one.failures })}</span>}
              <span className="muted">{one.worker ? t("assets.watcherRuns", { worker: one.worker }) : one.next_start ? <>{t("assets.watcherNext")} <DueText at={one.next_start} /></> : t("assets.watcherIdle")}</span>
            </p>
            <code className="mono muted wrap">{one.trigger}</code>
            {one.error && <pre className={parts.code}>{one.error.trim()}</pre>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Events({ events }: { events: readonly Schemas["AssetEventView"][] }) {
  const t = useText();
  if (events.length === 0) return <p className="muted">{t("assets.noEvents")}</p>;
  return (
    <ul className={styles.events}>
      {events.map((one) => {
        const extra = one.extra && Object.keys(one.extra).length ? JSON.stringify(one.extra) : "";
        const run = `/dags/${enc(one.source_dag_id ?? "")}/runs/${enc(one.source_run_id ?? "")}`;
        return (
          <li key={one.id}>
            <TimeText at={one.timestamp} />
            <span className={styles.event}>
              {one.source_dag_id && one.source_run_id
                ? <span className="cut">{t("assets.by")} <To href={one.source_task_id ? `${run}/tasks/${enc(one.source_task_id)}` : run}>{[one.source_dag_id, one.source_task_id].filter(Boolean).join(" · ")}</To></span>
                : <span className="muted">{t("assets.byPerson")}</span>}
              {one.partition_key !== null && <span className="muted cut">{t("assets.partition", { key: one.partition_key })}</span>}
              {extra && <code className="mono muted cut" title={extra}>{extra}</code>}
            </span>
            <span className={styles.runs}>
              {one.created_dagruns.map((made) => (
                <To key={`${made.dag_id} ${made.run_id}`} href={`/dags/${enc(made.dag_id)}/runs/${enc(made.run_id)}`} title={made.run_id}><StateIcon state={made.state} size={14} /> {made.dag_id}</To>
              ))}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
