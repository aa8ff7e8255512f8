// What people and programs did to a run: the entries of the audit log, the newest first.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";

import { api, read, type Schemas } from "../../api/client";
import { enc, runTopic } from "../../api/query";
import { useText } from "../../i18n";
import { useNarrow, usePhone } from "../../parts/filters";
import { EmptyState, ErrorState, Loading } from "../../parts/status";
import { To } from "../../parts/To";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { TimeText } from "../../time/TimeText";
import styles from "./run.module.css";

const PAGE = 100;
type Event = Schemas["EventView"];

export default function EventsTab() {
  const t = useText();
  const { dagId, runId } = useParams({ from: "/shell/dags/$dagId/runs/$runId/events" });
  const narrow = useNarrow(), phone = usePhone();
  const query = useInfiniteQuery({
    queryKey: ["events", dagId, runId],
    queryFn: ({ signal, pageParam }) =>
      read(api.GET("/api/v2/eventLogs", { params: { query: { dag_id: dagId, run_id: runId, limit: PAGE, offset: pageParam, order_by: ["-when"] } }, signal })),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.event_logs.length === PAGE ? pages.length * PAGE : undefined),
    meta: { topics: [runTopic(dagId, runId)] },
  });
  const rows = query.data?.pages.flatMap((one) => one.event_logs) ?? [];
  const columns: Column<Event>[] = [
    { id: "when", title: t("run.when"), width: "150px", render: (one) => <TimeText at={one.when} /> },
    { id: "event", title: t("run.event"), width: "minmax(120px, 200px)", render: (one) => <span title={one.event}>{one.event}</span> },
    ...(phone ? [] : [{
      id: "task", title: t("common.task"), width: "minmax(100px, 240px)",
      render: (one: Event) => one.task_id && <To href={`/dags/${enc(dagId)}/runs/${enc(runId)}/tasks/${enc(one.task_id)}`} title={one.task_id}>{one.task_id}</To>,
    }]),
    { id: "owner", title: t("run.who"), width: "minmax(72px, 140px)", render: (one) => <span title={one.owner ?? ""}>{one.owner}</span> },
    ...(narrow ? [] : [{ id: "extra", title: t("run.extra"), width: "minmax(160px, 1fr)", render: (one: Event) => <code className="mono muted" title={one.extra ?? ""}>{one.extra}</code> }]),
  ];
  return (
    <div className={styles.tab}>
      {query.error !== null && <ErrorState error={query.error} retry={() => void query.refetch()} />}
      {query.data === undefined ? (query.error ? null : <Loading />) : rows.length === 0 ? (
        <EmptyState title={t("run.noEvents")}>
          <p>{t("run.eventsTeach")}</p>
        </EmptyState>
      ) : (
        <div className={styles.table}>
          <VirtualTable
            label={t("run.events")} rows={rows} columns={columns} rowKey={(one) => String(one.event_log_id)}
            onEnd={() => {
              if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
            }}
          />
        </div>
      )}
    </div>
  );
}
