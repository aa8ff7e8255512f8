// The instances of a mapped task with their states, beside the one that is shown.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown } from "lucide-react";
import { useEffect, useState } from "react";

import { useParam } from "../../address";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { Select } from "../../parts/fields";
import { ErrorState } from "../../parts/status";
import { StateIcon } from "../../state/StateIcon";
import { BY_URGENCY, stateWord } from "../../state/states";
import { DurationText } from "../../time/TimeText";
import { MAPPED_PAGE, mappedKey, mappedTopics, put, readMapped } from "./query";
import styles from "./task.module.css";

const ROW = 28;

interface Props {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
  total: number;
  /** Of the shown instance. */
  state: string | null;
}

export function MappedList({ dagId, runId, taskId, mapIndex, total, state }: Props) {
  const t = useText();
  const [filter, setFilter] = useParam("mapState");
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [open, setOpen] = useState(false);
  const of = { dagId, runId, taskId, mapIndex };
  const query = useInfiniteQuery({
    queryKey: mappedKey(of, filter),
    queryFn: ({ signal, pageParam }) => readMapped(of, filter, pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.task_instances.length === MAPPED_PAGE ? pages.length * MAPPED_PAGE : undefined),
    meta: { topics: mappedTopics(of) },
  });
  const rows = query.data?.pages.flatMap((one) => one.task_instances) ?? [];
  const count = query.data?.pages[0]?.total_entries ?? total;
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box, estimateSize: () => ROW, overscan: 10 });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  useEffect(() => {
    if (rows.length && last >= rows.length - 5 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return (
    <aside className={styles.mapped} aria-label={t("task.mapped")} data-open={open || undefined}>
      <div className={styles.mappedPhone}>
        <Button onPress={() => setOpen(!open)}>
          <StateIcon state={state} decorative /> [{mapIndex}] <span className="muted">{t("task.ofInstances", { count: total })}</span> <ChevronDown size={14} aria-hidden />
        </Button>
      </div>
      <div className={styles.mappedHead}>
        <h2>{t("task.mapped")}</h2>
        <Select
          compact label={t("task.mappedState")} value={filter || "all"} onChange={(value) => setFilter(value === "all" ? "" : value)}
          choices={[
            { value: "all", label: `${t("common.all")} ${formatNumber(total)}` },
            ...BY_URGENCY.filter((one) => one !== "none").map((one) => ({ value: one, label: stateWord(one), icon: <StateIcon state={one} decorative /> })),
          ]}
        />
      </div>
      {query.error !== null && <ErrorState error={query.error} retry={() => void query.refetch()} />}
      <div ref={setBox} className={styles.mappedBox}>
        <ul style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {shown.map((item) => {
            const one = rows[item.index];
            if (!one) return null;
            const label = one.rendered_map_index && one.rendered_map_index !== String(one.map_index) ? one.rendered_map_index : "";
            return (
              <li key={one.map_index} style={{ position: "absolute", top: item.start, left: 0, right: 0, height: ROW }}>
                <Link
                  to="." search={put({ map: String(one.map_index), try: "" })} hash="" className={styles.mappedRow}
                  data-on={one.map_index === mapIndex || undefined} aria-current={one.map_index === mapIndex ? "true" : undefined} activeProps={{}} onClick={() => setOpen(false)}
                >
                  <StateIcon state={one.state} />
                  <span className="figures">{one.map_index}</span>
                  <span className="cut muted grow" title={label}>{label}</span>
                  {one.start_date && <span className="muted small"><DurationText start={one.start_date} end={one.end_date} /></span>}
                </Link>
              </li>
            );
          })}
        </ul>
        {query.data && count === 0 && <p className={`muted ${styles.none}`}>{t("task.mappedNone")}</p>}
      </div>
    </aside>
  );
}
