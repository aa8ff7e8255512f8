// Materialise an asset, or add an event by hand. Each dialog first says what will happen.
import { useState, type ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { enc } from "../../api/query";
import { t, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs, type CopyableAction } from "../../parts/CopyAs";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/fields";
import { errorText, Notice } from "../../parts/status";
import { To } from "../../parts/To";
import { toast } from "../../parts/toast";
import styles from "./assets.module.css";
import { refreshAssets } from "./query";

interface Props {
  asset: Schemas["AssetView"];
  onClose: () => void;
}

export function MaterialiseDialog({ asset, onClose }: Props) {
  useText();
  const producer = asset.producing_tasks[0];
  const dags = [...new Set(asset.producing_tasks.map((one) => one.dag_id))];
  const refused = !producer ? t("assets.noProducer") : dags.length > 1 ? t("assets.severalProducers", { dags: dags.join(", ") }) : undefined;
  return (
    <Frame
      title={t("assets.materialiseTitle", { name: asset.name })} button={t("assets.materialise")} refused={refused} onClose={onClose}
      copy={{ command: commandLine("tradewind", "assets", "materialize", "--name", asset.name), method: "POST", path: `/api/v2/assets/${asset.id}/materialize`, body: {} }}
      send={async () => {
        const run = await read(api.POST("/api/v2/assets/{asset_id}/materialize", { params: { path: { asset_id: asset.id } } }));
        toast(<To href={`/dags/${enc(run.dag_id)}/runs/${enc(run.dag_run_id)}`}>{t("assets.started", { run: run.dag_run_id })}</To>);
      }}
    >
      <p>{refused ?? t("assets.materialiseText", { dag: producer?.dag_id ?? "", task: producer?.task_id ?? "" })}</p>
      {dags.length > 1 && <ul className={styles.items}>{dags.map((one) => <li key={one}><To className={styles.strong} href={`/dags/${enc(one)}`}>{one}</To></li>)}</ul>}
    </Frame>
  );
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const found: unknown = JSON.parse(text || "{}");
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export function EventDialog({ asset, onClose }: Props) {
  useText();
  const [extra, setExtra] = useState("{}");
  const [partition, setPartition] = useState("");
  const found = objectOf(extra);
  const wrong = found ? undefined : t("assets.extraWrong");
  const body = { asset_id: asset.id, extra: found ?? {}, ...(partition ? { partition_key: partition } : {}) };
  return (
    <Frame
      title={t("assets.addEventTitle", { name: asset.name })} button={t("assets.addEvent")} refused={wrong} onClose={onClose} copy={{ command: commandLine("tradewind", "assets", "create-event", "--name", asset.name, ...(extra === "{}" ? [] : ["--extra", extra]), partition && "--partition-key", partition), method: "POST", path: "/api/v2/assets/events", body }}
      send={async () => {
        await read(api.POST("/api/v2/assets/events", { body }));
        toast(t("assets.added"));
      }}
    >
      <p>{t("assets.addEventText", { count: asset.scheduled_dags.length })}</p>
      {asset.scheduled_dags.length > 0 && <ul className={styles.items}>{asset.scheduled_dags.map((one) => <li key={one.dag_id}><To className={styles.strong} href={`/dags/${enc(one.dag_id)}`}>{one.dag_id}</To></li>)}</ul>}
      <TextField label={t("assets.partitionKey")} value={partition} onChange={setPartition} hint={t("assets.partitionKeyHint")} />
      <TextField label={t("assets.extra")} value={extra} onChange={setExtra} lines={4} mono error={wrong} />
    </Frame>
  );
}

function Frame({ title, button, refused, copy, send, onClose, children }: {
  title: string; button: string; refused: string | undefined; copy: CopyableAction; send: () => Promise<void>; onClose: () => void; children: ReactNode;
}) {
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState("");
  async function go(): Promise<void> {
    setPending(true);
    setProblem("");
    try {
      await send();
      onClose();
      await refreshAssets();
    } catch (error) {
      setProblem(errorText(error));
      setPending(false);
    }
  }
  return (
    <Dialog
      title={title} onClose={onClose}
      foot={
        <>
          <CopyAs action={copy} />
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" pending={pending} refused={refused} onPress={() => void go()}>{button}</Button>
        </>
      }
    >
      {children}
      {problem && <Notice>{problem}</Notice>}
    </Dialog>
  );
}
