// A table of any length: only the rows in view are drawn. Rows have a fixed height, so nothing jumps. The whole row is a link.
//
// Keys on the focused table: j and k or the arrows move the active row, Enter opens it.
import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useEffect, useState, type ReactNode } from "react";

import styles from "./parts.module.css";

export interface Column<T> {
  id: string;
  title: ReactNode;
  /** A track of CSS grid: `minmax(120px, 1fr)`, `96px`. */
  width: string;
  right?: boolean;
  /** Lets a control's focus ring or menu stand out of the cell. */
  open?: boolean;
  /** The name to order by; the title becomes a button. */
  sort?: string;
  render: (row: T) => ReactNode;
}

interface Props<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  /** The address that a row opens. */
  href?: (row: T) => string | undefined;
  onOpen?: (row: T) => void;
  /** The active row changed by keys; for keys of the page that act on it. */
  onKey?: (key: string, row: T) => void;
  rowHeight?: number;
  /** The order: a column's `sort`, with `-` in front: descending. */
  order?: string;
  onOrder?: (order: string) => void;
  /** Called when the end comes into view: load the next page. */
  onEnd?: () => void;
  foot?: ReactNode;
}

export function VirtualTable<T>({ label, rows, columns, rowKey, href, onOpen, onKey, rowHeight = 36, order, onOrder, onEnd, foot }: Props<T>) {
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [active, setActive] = useState(-1);
  const navigate = useNavigate();
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box, estimateSize: () => rowHeight, overscan: 8, paddingStart: 36 });
  const shown = virtual.getVirtualItems();
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length && lastShown >= rows.length - 10) onEnd?.();
  }, [lastShown, rows.length, onEnd]);
  const template = columns.map((one) => one.width).join(" ");

  function open(row: T): void {
    const address = href?.(row);
    if (onOpen) onOpen(row);
    else if (address) void navigate({ href: address });
  }

  function move(to: number): void {
    const place = Math.max(0, Math.min(rows.length - 1, to));
    setActive(place);
    virtual.scrollToIndex(place);
  }

  return (
    <div
      ref={setBox} className={styles.table} role="table" aria-label={label} aria-rowcount={rows.length + 1} tabIndex={0}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
        const row = rows[active];
        if (event.key === "j" || event.key === "ArrowDown") move(active + 1);
        else if (event.key === "k" || event.key === "ArrowUp") move(active - 1);
        else if (event.key === "Home") move(0);
        else if (event.key === "End") move(rows.length - 1);
        else if (event.key === "Enter" && row) open(row);
        else if (row && onKey) {
          onKey(event.key, row);
          return;
        } else return;
        event.preventDefault();
      }}
    >
      <div className={styles.tableInner} style={{ height: virtual.getTotalSize() + (foot ? 48 : 0) }}>
        <div className={styles.tableHead} role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
          {columns.map((one) => (
            <Title key={one.id} column={one} order={order} onOrder={onOrder} />
          ))}
        </div>
        {shown.map((item) => {
          const row = rows[item.index] as T;
          const address = href?.(row);
          return (
            <div
              key={rowKey(row)} className={styles.tableRow} role="row" aria-rowindex={item.index + 2} data-active={item.index === active || undefined}
              data-href={address ?? (onOpen ? "" : undefined)} style={{ gridTemplateColumns: template, height: rowHeight, top: item.start }}
              onClick={(event) => {
                const inside = (event.target as HTMLElement).closest("a, button, input, label, [role=button]");
                if (inside || window.getSelection()?.toString()) return;
                setActive(item.index);
                if (address && (event.ctrlKey || event.metaKey)) window.open(address);
                else open(row);
              }}
            >
              {columns.map((one) => (
                <div key={one.id} role="cell" className={`${styles.cell} ${one.right ? styles.right : ""} ${one.open ? styles.open : ""}`}>
                  {one.render(row)}
                </div>
              ))}
            </div>
          );
        })}
        {foot && <div style={{ position: "absolute", left: 24, right: 24, top: virtual.getTotalSize() + 12 }}>{foot}</div>}
      </div>
    </div>
  );
}

function Title<T>({ column, order, onOrder }: { column: Column<T>; order: string | undefined; onOrder: ((order: string) => void) | undefined }) {
  const sort = column.sort;
  const up = order === sort, down = order === `-${sort}`;
  return (
    <div
      role="columnheader" className={`${styles.cell} ${column.right ? styles.right : ""}`} {...(sort ? { "aria-sort": up ? "ascending" : down ? "descending" : "none" } : {})}
    >
      {sort && onOrder ? (
        <button type="button" className={styles.sort} onClick={() => onOrder(up ? `-${sort}` : sort)}>
          {column.title}
          {up && <ArrowUp size={12} aria-hidden />}
          {down && <ArrowDown size={12} aria-hidden />}
        </button>
      ) : (
        column.title
      )}
    </div>
  );
}
