// The list of all sections of the admin page: a filter, rows, a sheet for one row, an empty state that teaches.
//
// The address keeps the filter (`q`) and the row whose sheet is open (`open`), so both can be sent to a colleague.
import { Plus, SearchX } from "lucide-react";
import { useCallback, useEffect, useMemo, useState, type ReactNode } from "react";

import { useAddress, useParam } from "../../address";
import { ApiError } from "../../api/client";
import { usePages, type Rows } from "../../api/pages";
import { formatNumber, useText } from "../../i18n";
import { storedText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { SearchParam } from "../../parts/filters";
import parts from "../../parts/parts.module.css";
import { EmptyState, Loaded } from "../../parts/status";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import styles from "./admin.module.css";

/** Maximum number of rows that a filter in the browser reads. */
const FILTERED_MAX = 2000;

interface Props<T> {
  /** Part of the key of the query. */
  name: string;
  topics?: readonly string[];
  /** Interval after which the list is read again, if the stream of changes does not name its changes. */
  everyMs?: number;
  /** One page of the list. `search` is empty if the server cannot filter. */
  load: (signal: AbortSignal, offset: number, search: string) => Promise<Rows<T>>;
  /** The name of the search field, if the server filters. Otherwise all rows are read and filtered here. */
  search?: string;
  label: string;
  /** The first column names the row; it opens the sheet. */
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  /** The text in which the filter searches. */
  text: (row: T) => string;
  /** The sheet of a row, or of a new object (null). */
  sheet?: (row: T | null, onClose: () => void) => ReactNode;
  add?: { label: string; refused: string | undefined };
  /** More filters. */
  filters?: ReactNode;
  keep?: (row: T) => boolean;
  /** Above the table. */
  above?: ReactNode;
  empty: { icon: ReactNode; title: string; text: string; code?: string };
}

export function AdminList<T>({ name, topics = ["triage"], everyMs, load, search, label, columns, rowKey, text, sheet, add, filters, keep, above, empty }: Props<T>) {
  const t = useText();
  const { q = "" } = useAddress();
  const [open, setOpen] = useParam("open");
  const [adding, setAdding] = useState(false);
  const asked = search ? q : "";
  const pages = usePages<T>(["admin", name, asked], topics, (signal, offset) => load(signal, offset, asked), rowKey, everyMs);
  const { data, total, hasMore, loadMore } = pages;
  const words = search ? "" : q.toLowerCase();
  const rows = useMemo(
    () => (data ?? []).filter((row) => (!keep || keep(row)) && (!words || text(row).toLowerCase().includes(words))),
    [data, keep, words, text],
  );
  const opened = open && sheet ? data?.find((row) => rowKey(row) === open) : undefined;
  // The searched row may be on a later page.
  const looking = (words !== "" || keep !== undefined || (open !== "" && sheet !== undefined && opened === undefined)) && hasMore && (data?.length ?? 0) < FILTERED_MAX;
  useEffect(() => {
    if (looking) loadMore();
  }, [looking, loadMore, data]);
  const close = useCallback(() => {
    setAdding(false);
    setOpen("");
  }, [setOpen]);
  const opening = sheet !== undefined;
  const shown = useMemo(() => (opening ? columns.map((one, at) => (at === 0 ? opener(one, rowKey, setOpen) : one)) : columns), [opening, columns, rowKey, setOpen]);
  const forbidden = pages.error instanceof ApiError && pages.error.status === 403;
  return (
    <div className={styles.content}>
      <div className={styles.toolbar}>
        <SearchParam name="q" label={search ?? t("admin.filter")} width={240} />
        {filters}
        {data && total > 0 && !forbidden && (
          <span className="muted figures">{rows.length < total ? t("admin.shownOf", { shown: formatNumber(rows.length), total: formatNumber(total) }) : formatNumber(total)}</span>
        )}
        {add && <span className={styles.end}><Button look="primary" refused={add.refused} onPress={() => setAdding(true)}><Plus size={14} aria-hidden /> {add.label}</Button></span>}
      </div>
      {above}
      {forbidden ? (
        <EmptyState title={t("admin.notAllowed")}><p>{pages.error instanceof ApiError && storedText(pages.error.message)}</p></EmptyState>
      ) : (
        <div className={styles.list}>
          <Loaded query={pages}>
            {(loaded) =>
              rows.length > 0 ? (
                <VirtualTable label={label} rows={rows} columns={shown} rowKey={rowKey} onEnd={loadMore} {...(sheet ? { onOpen: (row: T) => setOpen(rowKey(row)) } : {})} />
              ) : loaded.length > 0 || q ? (
                <EmptyState icon={<SearchX size={28} aria-hidden />} title={t("admin.noneMatch")}><p>{t("admin.noneMatchText")}</p></EmptyState>
              ) : (
                <EmptyState icon={empty.icon} title={empty.title}>
                  <p>{empty.text}</p>
                  {empty.code && <pre className={parts.code}>{empty.code}</pre>}
                </EmptyState>
              )
            }
          </Loaded>
        </div>
      )}
      {sheet && (adding ? sheet(null, close) : opened !== undefined && sheet(opened, close))}
    </div>
  );
}

/** The first column as a button, for the keyboard and for screen readers. */
function opener<T>(column: Column<T>, rowKey: (row: T) => string, open: (key: string) => void): Column<T> {
  return {
    ...column,
    render: (row) => <button type="button" className={`${styles.opener} cut`} onClick={() => open(rowKey(row))}>{column.render(row)}</button>,
  };
}
