// The details of a run: its note, why it waits or ended, its configuration and its dates.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Copy } from "lucide-react";
import type { ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { formatNumber, useText } from "../../i18n";
import { storedText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { copyText } from "../../parts/CopyAs";
import { Section } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { Loaded } from "../../parts/status";
import { To } from "../../parts/To";
import { StateChip } from "../../state/StateIcon";
import { runTypeWord } from "../../state/states";
import { durationText } from "../../time/format";
import { DurationText, TimeText } from "../../time/TimeText";
import { enc } from "../../api/query";
import { JsonTree } from "../task/JsonTree";
import { NoteEditor } from "../task/NoteEditor";
import { RunWhyPanel } from "../why/WhyPanel";
import { runQuery } from "./query";
import styles from "./run.module.css";

export default function DetailsTab() {
  const { dagId, runId } = useParams({ from: "/shell/dags/$dagId/runs/$runId/details" });
  const query = useQuery(runQuery(dagId, runId));
  return <div className={styles.scrolls}><Loaded query={query}>{(page) => <Details page={page} />}</Loaded></div>;
}

function Details({ page }: { page: Schemas["PageRun"] }) {
  const t = useText();
  const { run, usual } = page;
  const cache = useQueryClient();
  const refusal = useRefusal("edit:run");
  async function saveNote(text: string): Promise<void> {
    await read(api.PATCH("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}", { params: { path: { dag_id: run.dag_id, dag_run_id: run.dag_run_id } }, body: { note: text || null } }));
    await cache.invalidateQueries({ queryKey: runQuery(run.dag_id, run.dag_run_id).queryKey });
  }
  const version = run.dag_versions.at(-1);
  const conf = run.conf as Record<string, unknown> | null;
  return (
    <>
      <Section title={t("run.note")}><NoteEditor note={run.note} refusal={refusal} save={saveNote} /></Section>
      {run.state !== "success" && (
        <Section title={t("run.why")}>
          <div className={styles.inside}><RunWhyPanel dagId={run.dag_id} runId={run.dag_run_id} /></div>
        </Section>
      )}
      <Section title={t("run.about")}>
        <dl className={parts.definition}>
          <Fact name={t("run.id")}>
            <span className={styles.id}>
              <code className="mono wrap">{run.dag_run_id}</code>
              <Button look="quiet" compact icon label={t("run.copyId")} onPress={() => void copyText(run.dag_run_id)}><Copy size={14} /></Button>
            </span>
          </Fact>
          <Fact name={t("common.state")}><StateChip state={run.state} /></Fact>
          <Fact name={t("run.reason")}>{page.reason && storedText(page.reason)}</Fact>
          <Fact name={t("run.type")}>{runTypeWord(run.run_type)}</Fact>
          <Fact name={t("run.triggeredBy")}>{[run.triggering_user_name, run.triggered_by].filter(Boolean).join(" · ")}</Fact>
          <Fact name={t("run.logicalDate")}><TimeText at={run.logical_date} zoned /></Fact>
          <Fact name={t("run.interval")}>{run.data_interval_start && <><TimeText at={run.data_interval_start} /> – <TimeText at={run.data_interval_end} zoned /></>}</Fact>
          <Fact name={t("run.runAfter")}><TimeText at={run.run_after} zoned /></Fact>
          <Fact name={t("run.queuedAt")}><TimeText at={run.queued_at} zoned /></Fact>
          <Fact name={t("common.started")}>{run.start_date && <TimeText at={run.start_date} zoned />}</Fact>
          <Fact name={t("common.ended")}>{run.end_date && <TimeText at={run.end_date} zoned />}</Fact>
          <Fact name={t("common.duration")}>
            {run.start_date && <DurationText start={run.start_date} end={run.end_date} />}
            {usual && <span className="muted"> {t("run.usualOf", { count: usual.runs, low: durationText(usual.low), high: durationText(usual.high) })}</span>}
          </Fact>
          <Fact name={t("run.partition")}>{run.partition_key}</Fact>
          <Fact name={t("run.version")}>
            {version && <Link to="/dags/$dagId/code" params={{ dagId: run.dag_id }} search={{ v: String(version.version_number) }}>v{version.version_number}</Link>}
            {version && <span className="muted"> <TimeText at={version.created_at} zoned /></span>}
          </Fact>
          <Fact name={t("run.instancesByState")}>
            <span className={styles.totals}>
              {page.totals.map((count, at) => count > 0 && (
                <To key={page.states[at]} href={`/dags/${enc(run.dag_id)}/runs/${enc(run.dag_run_id)}?state=${page.states[at]}`} className={styles.total}>
                  <StateChip state={page.states[at] ?? "none"} count={formatNumber(count)} />
                </To>
              ))}
            </span>
          </Fact>
        </dl>
      </Section>
      <Section
        title={t("run.conf")}
        more={conf && Object.keys(conf).length > 0 && <Button look="quiet" compact icon label={t("run.copyConf")} onPress={() => void copyText(JSON.stringify(conf, null, 2))}><Copy size={14} /></Button>}
      >
        {conf && Object.keys(conf).length > 0 ? <JsonTree value={conf} /> : <p className="muted">{t("run.noConf")}</p>}
      </Section>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === null || children === undefined || children === false || children === "") return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
