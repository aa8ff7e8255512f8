// The audit log: who did what, the newest first. The server filters, so that old entries are found too.
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { ScrollText, SearchX } from "lucide-react";
import { useCallback, useMemo } from "react";

import { useAddress } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { enc } from "../../api/query";
import { useText } from "../../i18n";
import { FilterRow, SearchParam, usePhone } from "../../parts/filters";
import { EmptyState, Loaded } from "../../parts/status";
import { To } from "../../parts/To";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { TimeText } from "../../time/TimeText";
import styles from "./admin.module.css";

type Entry = Schemas["EventView"];
const PAGE_SIZE = 100;

export function AuditSection() {
  const t = useText();
  const phone = usePhone();
  const { dag = "", event = "", who = "" } = useAddress();
  const query = useInfiniteQuery({
    queryKey: ["admin", "audit", dag, event, who],
    queryFn: ({ signal, pageParam }) =>
      read(api.GET("/api/v2/eventLogs", {
        signal,
        params: {
          query: {
            limit: PAGE_SIZE, offset: pageParam, order_by: ["-id"], ...(dag ? { dag_id_pattern: dag } : {}), ...(event ? { event_pattern: event } : {}), ...(who ? { owner_pattern: who } : {}),
          },
        },
      })),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.event_logs.length === PAGE_SIZE ? pages.length * PAGE_SIZE : undefined),
    placeholderData: keepPreviousData,
    meta: { topics: ["triage"] },
  });
  // New entries shift the pages while they are loaded: an entry on two pages is shown once.
  const rows = useMemo(() => [...new Map(query.data?.pages.flatMap((page) => page.event_logs).map((one) => [one.event_log_id, one])).values()], [query.data]);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  const columns = useMemo<Column<Entry>[]>(() => {
    const found: Column<Entry>[] = [
      { id: "when", title: t("admin.when"), width: phone ? "124px" : "148px", render: (one) => <TimeText at={one.when} precision={phone ? "minute" : "second"} /> },
      { id: "event", title: t("admin.event"), width: "minmax(100px, 0.8fr)", render: (one) => <b title={one.event}>{one.event}</b> },
      { id: "who", title: t("admin.who"), width: "minmax(70px, 0.5fr)", render: (one) => <span title={one.owner ?? ""}>{one.owner}</span> },
    ];
    if (!phone) {
      found.push({
        id: "of", title: t("admin.of"), width: "minmax(140px, 1.4fr)",
        render: (one) => {
          if (!one.dag_id) return null;
          const text = [one.dag_id, one.run_id, one.task_id].filter(Boolean).join(" · ");
          const run = one.run_id ? `/runs/${enc(one.run_id)}` : "";
          return <To href={`/dags/${enc(one.dag_id)}${run}${run && one.task_id ? `/tasks/${enc(one.task_id)}` : ""}`} title={text}>{text}</To>;
        },
      });
      found.push({ id: "details", title: t("admin.details"), width: "minmax(120px, 1.6fr)", render: (one) => <code className="mono muted" title={one.extra ?? ""}>{one.extra}</code> });
    }
    return found;
  }, [t, phone]);
  return (
    <div className={styles.content}>
      <div className={styles.toolbar}>
        <FilterRow>
          <SearchParam name="dag" label={t("admin.auditDag")} width={200} />
          <SearchParam name="event" label={t("admin.auditEvent")} width={180} />
          <SearchParam name="who" label={t("admin.auditOwner")} width={200} />
        </FilterRow>
      </div>
      <div className={styles.list}>
        <Loaded query={query}>
          {() =>
            rows.length > 0 ? (
              <VirtualTable label={t("admin.audit")} rows={rows} columns={columns} rowKey={(one) => String(one.event_log_id)} onEnd={onEnd} />
            ) : dag || event || who ? (
              <EmptyState icon={<SearchX size={28} aria-hidden />} title={t("admin.noneMatch")}><p>{t("admin.noneMatchText")}</p></EmptyState>
            ) : (
              <EmptyState icon={<ScrollText size={28} aria-hidden />} title={t("admin.emptyAudit")}><p>{t("admin.emptyAuditText")}</p></EmptyState>
            )
          }
        </Loaded>
      </div>
    </div>
  );
}
