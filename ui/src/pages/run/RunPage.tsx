// The pages of one run: the header with its state and actions, and the tabs.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useParams } from "@tanstack/react-router";
import { MessageSquareText } from "lucide-react";
import { useMemo, useState } from "react";

import type { Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { useText } from "../../i18n";
import type { MessageKey } from "../../i18n/keys";
import { storedText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Page, Slash } from "../../parts/Page";
import { RouteTabs } from "../../parts/RouteTabs";
import { ErrorState } from "../../parts/status";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateChip } from "../../state/StateIcon";
import { runTypeWord } from "../../state/states";
import { durationText } from "../../time/format";
import { DurationText, TimeText } from "../../time/TimeText";
import { ClearDialog, MarkDialog } from "../actions/dialogs";
import { runQuery } from "./query";
import styles from "./run.module.css";

const TABS: readonly { to: "" | "/gantt" | "/graph" | "/events" | "/details"; text: MessageKey }[] = [
  { to: "", text: "run.tasks" },
  { to: "/gantt", text: "run.gantt" },
  { to: "/graph", text: "run.graph" },
  { to: "/events", text: "run.events" },
  { to: "/details", text: "run.details" },
];

export default function RunPage() {
  const t = useText();
  const { dagId, runId } = useParams({ from: "/shell/dags/$dagId/runs/$runId" });
  const query = useQuery(runQuery(dagId, runId));
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  const refusal = useRefusal("edit:run");
  const keys = useMemo<PageKey[]>(
    () => [
      { key: "c", what: "common.clear", run: () => !refusal && setDialog("clear") },
      { key: "m", what: "common.mark", run: () => !refusal && setDialog("mark") },
    ],
    [refusal],
  );
  usePageKeys(keys);
  const run = query.data?.run;
  return (
    <Page
      title={run ? <TimeText at={run.run_after} precision="minute" zoned /> : runId}
      name={`${runId} · ${dagId}`}
      crumbs={
        <>
          <Link to="/dags/$dagId" params={{ dagId }} className={styles.crumb} title={dagId}>{run?.dag_display_name ?? dagId}</Link>
          <Slash />
        </>
      }
      facts={query.data ? <Facts page={query.data} /> : <span>&nbsp;</span>}
      actions={
        <>
          <Button onPress={() => setDialog("clear")} refused={refusal}>{t("common.clear")}</Button>
          <Button onPress={() => setDialog("mark")} refused={refusal}>{t("common.mark")}</Button>
          <CopyAs
            action={{
              command: commandLine("tradewind", "dags", "clear", dagId, "--run-id", runId), method: "POST",
              path: `/api/v2/dags/${encodeURIComponent(dagId)}/dagRuns/${encodeURIComponent(runId)}/clear`, body: { dry_run: false },
            }}
          />
        </>
      }
      tabs={<RouteTabs label={t("run.tabs")} base="/dags/$dagId/runs/$runId" params={{ dagId, runId }} tabs={TABS} />}
      fill
    >
      {query.error && !query.data ? <ErrorState error={query.error} retry={() => void query.refetch()} /> : <Outlet />}
      {dialog === "clear" && <ClearDialog dagId={dagId} runId={runId} tasks={[]} onClose={() => setDialog(null)} />}
      {dialog === "mark" && <MarkDialog dagId={dagId} runId={runId} tasks={[]} onClose={() => setDialog(null)} />}
    </Page>
  );
}

function Facts({ page }: { page: Schemas["PageRun"] }) {
  const t = useText();
  const { run, usual } = page;
  const reason = page.reason && storedText(page.reason);
  return (
    <>
      <StateChip state={run.state} />
      <span title={run.dag_run_id}>{runTypeWord(run.run_type)}</span>
      {run.start_date ? (
        <span>
          <b className={styles.strong}><DurationText start={run.start_date} end={run.end_date} /></b>
          {usual && <span title={t("run.usualOf", { count: usual.runs, low: durationText(usual.low), high: durationText(usual.high) })}> {t("run.usual", { duration: durationText(usual.median) })}</span>}
        </span>
      ) : (
        <span>{t("run.notStarted")}</span>
      )}
      {run.triggering_user_name && <span className="cut" title={run.triggering_user_name}>{t("run.by", { name: run.triggering_user_name })}</span>}
      {run.note && (
        <Link to="/dags/$dagId/runs/$runId/details" params={{ dagId: run.dag_id, runId: run.dag_run_id }} className={styles.noteLink} title={run.note}>
          <MessageSquareText size={14} aria-hidden /> <span className="cut">{run.note}</span>
        </Link>
      )}
      {reason && <span className={`${run.state === "failed" ? "danger" : "muted"} cut ${styles.reason}`} title={reason}>{reason}</span>}
    </>
  );
}
