// A JSON value as a tree that opens level by level. Long lists and texts are shown in parts, so any value can be opened.
import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";

import { formatNumber, useText } from "../../i18n";
import styles from "./task.module.css";

const STEP = 100;
const TEXT_MOST = 2_000;

export function JsonTree({ value }: { value: unknown }) {
  return <div className={styles.tree}><Node value={value} depth={0} /></div>;
}

function Node({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const t = useText();
  const [open, setOpen] = useState(depth < 2);
  const [most, setMost] = useState(STEP);
  const label = name === undefined ? null : <><span className={styles.key}>{name}</span>: </>;
  if (value === null || typeof value !== "object") return <div className={styles.leaf}>{label}<Scalar value={value} /></div>;
  const list = Array.isArray(value);
  const entries: [string, unknown][] = list ? value.slice(0, most).map((one, at) => [String(at), one as unknown]) : Object.entries(value);
  const size = list ? value.length : entries.length;
  const brackets = list ? "[]" : "{}";
  if (size === 0) return <div className={styles.leaf}>{label}{brackets}</div>;
  return (
    <div>
      <button type="button" className={styles.branch} aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? <ChevronDown size={12} aria-hidden /> : <ChevronRight size={12} aria-hidden />}
        {label}
        <span className="muted">{brackets[0]}{open ? "" : "…"}{open ? "" : brackets[1]} {formatNumber(size)}</span>
      </button>
      {open && (
        <div className={styles.inside}>
          {entries.slice(0, most).map(([key, one]) => <Node key={key} name={key} value={one} depth={depth + 1} />)}
          {size > most && <button type="button" className={styles.more} onClick={() => setMost(most + 10 * STEP)}>{t("task.moreEntries", { count: size - most })}</button>}
        </div>
      )}
    </div>
  );
}

function Scalar({ value }: { value: unknown }) {
  const [all, setAll] = useState(false);
  const t = useText();
  if (typeof value !== "string") return <span className={styles.scalar}>{String(value)}</span>;
  const text = JSON.stringify(value);
  return (
    <>
      <span className={styles.string}>{all ? text : text.slice(0, TEXT_MOST)}</span>
      {!all && text.length > TEXT_MOST && <button type="button" className={styles.more} onClick={() => setAll(true)}>{t("task.cutLine", { count: text.length - TEXT_MOST })}</button>}
    </>
  );
}
