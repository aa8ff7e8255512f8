// What the next runs of a DAG that is scheduled by assets wait for: each asset, and with partitions each key with its missing keys.
import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleDashed } from "lucide-react";

import { api, read, type Schemas } from "../../api/client";
import { dagTopic, live } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Loaded, Notice } from "../../parts/status";
import { To } from "../../parts/To";
import { AgoText } from "../../time/TimeText";
import styles from "./assets.module.css";

export function awaitedQuery(dagId: string) {
  return live(["dag", dagId, "awaited"], [dagTopic(dagId), "triage"], (signal) =>
    read(api.GET("/api/tradewind/v1/dags/{dag_id}/awaitedAssets", { params: { path: { dag_id: dagId } }, signal })));
}

export function Awaited({ dagId }: { dagId: string }) {
  const t = useText();
  const query = useQuery(awaitedQuery(dagId));
  return (
    <Loaded query={query} lines={3}>
      {(found) => (
        <div className={styles.awaited}>
          {found.is_paused && <Notice>{t("assets.pausedNotice")}</Notice>}
          {found.dropped && <Notice>{t("assets.dropped", { reason: found.dropped })}</Notice>}
          <p className="muted">{t(!found.is_partitioned ? `assets.rule_${found.rule}` : found.runs.length ? "assets.rulePartitions" : "assets.noKeys")}</p>
          <ul className={styles.awaitedRuns}>
            {found.runs.map((run) => (
              <li key={run.partition_key ?? ""}>
                {run.partition_key !== null && (
                  <p className={styles.partition}>
                    <code className="mono wrap">{run.partition_key}</code>
                    <span className="muted small">{run.is_due ? t("assets.keyDue") : run.since && <AgoText at={run.since} />}</span>
                  </p>
                )}
                <ul>
                  {run.assets.map((one) => <AwaitedAsset key={`${String(one.is_alias)} ${one.name}`} asset={one} />)}
                </ul>
              </li>
            ))}
          </ul>
          {found.has_more && <p className="muted">{t("assets.moreKeys", { count: found.runs.length })}</p>}
        </div>
      )}
    </Loaded>
  );
}

function AwaitedAsset({ asset }: { asset: Schemas["AwaitedAsset"] }) {
  const t = useText();
  const word = t(asset.is_complete ? "assets.updated" : "assets.awaited");
  const rest = asset.missing_count - asset.missing.length;
  return (
    <li className={styles.awaitedAsset} data-complete={asset.is_complete || undefined}>
      {asset.is_complete ? <CircleCheck size={16} aria-label={word} role="img" /> : <CircleDashed size={16} aria-label={word} role="img" />}
      <div className="grow">
        <p className={styles.awaitedLine}>
          {asset.id === null ? <span className="cut" title={asset.name}>{asset.name}</span> : <To className="cut" href={`/assets/${asset.id}`} title={asset.name}>{asset.name}</To>}
          {asset.is_alias && <span className="muted small">{t("assets.alias")}</span>}
          <span className="muted small figures">
            {asset.needed > 1 || asset.missing_count > 0 ? t("assets.keysOf", { arrived: formatNumber(asset.arrived), needed: formatNumber(asset.needed) })
              : asset.updated_at ? <AgoText at={asset.updated_at} /> : word}
          </span>
        </p>
        {asset.problem && <p className="danger small wrap">{asset.problem}</p>}
        {asset.missing.length > 0 && (
          <p className="small wrap">
            <span className="muted">{t("assets.missingKeys")}</span>{" "}
            {asset.missing.map((key) => <code key={key} className={styles.missingKey}>{key}</code>)}
            {rest > 0 && <span className="muted figures">+{formatNumber(rest)}</span>}
          </p>
        )}
      </div>
    </li>
  );
}
