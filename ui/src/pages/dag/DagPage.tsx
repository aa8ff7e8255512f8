// The pages of one DAG: the header with its schedule and actions, and the tabs.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useParams } from "@tanstack/react-router";
import { CalendarSync, Clock, Play, Star } from "lucide-react";
import { useEffect, useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { queries } from "../../api/query";
import { useText } from "../../i18n";
import type { MessageKey } from "../../i18n/keys";
import { scheduleText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Switch } from "../../parts/fields";
import { usePhone } from "../../parts/filters";
import { Page, Slash } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { RouteTabs } from "../../parts/RouteTabs";
import { ErrorState } from "../../parts/status";
import { Tip } from "../../parts/Tip";
import { toastError } from "../../parts/toast";
import { useFirstContent } from "../../shell/firstContent";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { durationText } from "../../time/format";
import { DueText } from "../../time/TimeText";
import { setDagZone, useZone } from "../../time/zone";
import { BackfillDialog, TriggerDialog } from "../actions/dialogs";
import { headQuery } from "./query";

const TABS: readonly { to: "" | "/grid" | "/graph" | "/runs" | "/calendar" | "/code" | "/details"; text: MessageKey }[] = [
  { to: "", text: "dag.overview" },
  { to: "/grid", text: "dag.grid" },
  { to: "/graph", text: "dag.graph" },
  { to: "/runs", text: "dag.runs" },
  { to: "/calendar", text: "dag.calendar" },
  { to: "/code", text: "dag.code" },
  { to: "/details", text: "dag.details" },
];

export default function DagPage() {
  const t = useText();
  const { dagId } = useParams({ from: "/shell/dags/$dagId" });
  const onGrid = useLocation({ select: (at) => /^\/dags\/[^/]+(\/grid|\/graph)?\/?$/.test(at.pathname) });
  // The cells of the overview, the grid and the graph bring the head with them.
  const head = useQuery({ ...headQuery(dagId), enabled: !onGrid });
  const details = head.data?.details;
  const phone = usePhone();
  const hasContent = useFirstContent();
  const [dialog, setDialog] = useState<"trigger" | "backfill" | null>(null);
  const refusedTrigger = useRefusal("create:run");
  const zone = details?.timezone ?? null;
  useEffect(() => {
    setDagZone(zone);
    return () => setDagZone(null);
  }, [zone]);
  const keys = useMemo<PageKey[]>(() => [{ key: "t", what: "dag.trigger", run: () => setDialog("trigger") }], []);
  usePageKeys(keys);
  const backfillRefused = refusedTrigger ?? (details && !details.is_backfillable ? t("dag.noBackfill") : undefined);
  return (
    <Page
      title={details?.dag_display_name ?? dagId} fill
      crumbs={<><Link to="/dags">{t("shell.dags")}</Link><Slash /></>}
      facts={<Facts head={head.data} />}
      actions={(hasContent || phone) && (
        <>
          <Favourite dagId={dagId} details={details} />
          <Pause dagId={dagId} details={details} />
          <Button onPress={() => setDialog("backfill")} refused={backfillRefused} {...(phone ? { icon: true, label: t("dag.backfill") } : {})}>
            <CalendarSync size={15} aria-hidden /> {!phone && t("dag.backfill")}
          </Button>
          <Button look="primary" onPress={() => setDialog("trigger")} refused={refusedTrigger}>
            <Play size={14} aria-hidden /> {t("dag.trigger")}
          </Button>
        </>
      )}
      tabs={<RouteTabs label={t("dag.tabs")} base="/dags/$dagId" params={{ dagId }} tabs={TABS} />}
    >
      {head.error && !head.data ? <ErrorState error={head.error} retry={() => void head.refetch()} /> : <Outlet />}
      {dialog === "trigger" && <TriggerDialog dagId={dagId} onClose={() => setDialog(null)} />}
      {dialog === "backfill" && <BackfillDialog dagId={dagId} onClose={() => setDialog(null)} />}
    </Page>
  );
}

function Facts({ head }: { head: Schemas["PageDagHead"] | undefined }) {
  const t = useText();
  const zone = useZone();
  if (!head) return null;
  const { details, usual } = head;
  return (
    <>
      <span className="row" style={{ gap: 6 }}>
        <Clock size={14} aria-hidden />
        <span title={details.timetable_summary ?? ""}>{scheduleText(head, zone) ?? details.timetable_summary ?? t("dag.noSchedule")}</span>
      </span>
      {details.next_dagrun_run_after && !details.is_paused && (
        <span>{t("dag.nextRun")} <DueText at={details.next_dagrun_run_after} /></span>
      )}
      {usual && <span title={t("dag.usualOf", { count: usual.runs })}>{t("dag.usual", { duration: durationText(usual.median) })}</span>}
      {details.is_stale && <span className="danger">{t("dag.stale")}</span>}
      {details.has_import_errors && <Link to="/admin/$section" params={{ section: "import-errors" }} className="danger">{t("dag.importError")}</Link>}
      <span className={parts.badge}>{zone}</span>
    </>
  );
}

interface Known {
  dagId: string;
  details: Schemas["DagDetailsView"] | undefined;
}

/** Changes the kept head at once; the answer of the server replaces it. */
function patchHead(dagId: string, changes: Partial<Schemas["DagDetailsView"]>): () => void {
  const key = headQuery(dagId).queryKey;
  const before = queries.getQueryData(key);
  if (before) queries.setQueryData(key, { ...before, details: { ...before.details, ...changes } });
  return () => queries.setQueryData(key, before);
}

function Pause({ dagId, details }: Known) {
  const t = useText();
  const refused = useRefusal("edit:dag");
  const change = useMutation({
    mutationFn: (active: boolean) => read(api.PATCH("/api/v2/dags/{dag_id}", { params: { path: { dag_id: dagId } }, body: { is_paused: !active } })),
    onMutate: (active) => patchHead(dagId, { is_paused: !active }),
    onError: (error, _, undo) => {
      undo?.();
      toastError(error);
    },
  });
  if (!details) return null;
  const active = !details.is_paused;
  const control = (
    <span className="row">
      <Switch selected={active} disabled={Boolean(refused)} onChange={(wanted) => change.mutate(wanted)}>
        {t(active ? "dag.active" : "dag.paused")}
      </Switch>
      <CopyAs
        compact
        action={{ command: commandLine("tradewind", "dags", active ? "pause" : "unpause", dagId), method: "PATCH", path: `/api/v2/dags/${encodeURIComponent(dagId)}`, body: { is_paused: active } }}
      />
    </span>
  );
  return refused ? <Tip text={refused}>{control}</Tip> : control;
}

function Favourite({ dagId, details }: Known) {
  const t = useText();
  const change = useMutation({
    mutationFn: (wanted: boolean) =>
      read(api.POST(wanted ? "/api/v2/dags/{dag_id}/favorite" : "/api/v2/dags/{dag_id}/unfavorite", { params: { path: { dag_id: dagId } } })),
    onMutate: (wanted) => patchHead(dagId, { is_favorite: wanted }),
    onError: (error, _, undo) => {
      undo?.();
      toastError(error);
    },
  });
  if (!details) return null;
  return (
    <Button look="quiet" icon label={t(details.is_favorite ? "dag.unfavourite" : "dag.favourite")} onPress={() => change.mutate(!details.is_favorite)}>
      <Star size={16} fill={details.is_favorite ? "currentColor" : "none"} />
    </Button>
  );
}
