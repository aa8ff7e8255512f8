// Filters of lists. Each is a parameter of the address.
import { X } from "lucide-react";
import { useEffect, useRef, useState, useSyncExternalStore, type ReactNode } from "react";

import { useParam } from "../address";
import { formatNumber, useText } from "../i18n";
import { SearchField, Select, type Choice } from "./fields";
import styles from "./filters.module.css";

const PHONE = matchMedia("(max-width: 899px)");
const NARROW = matchMedia("(max-width: 1279px)");

function useMedia(media: MediaQueryList): boolean {
  return useSyncExternalStore(
    (changed) => {
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => media.matches,
  );
}

/** Whether the page has the layout of a phone. */
export function usePhone(): boolean {
  return useMedia(PHONE);
}

/** Whether a table has to leave columns out. */
export function useNarrow(): boolean {
  return useMedia(NARROW);
}

/** Filters that stand side by side, and on a phone in one line that scrolls. */
export function FilterRow({ children }: { children: ReactNode }) {
  return <div className={styles.scroller}>{children}</div>;
}

const TYPING_MS = 200;

/** A search field whose text is a parameter of the address. The address follows when the user stops typing. */
export function SearchParam({ name, label, width }: { name: string; label: string; width?: number }) {
  const [value, setValue] = useParam(name);
  const [typed, setTyped] = useState<{ text: string; of: string }>({ text: value, of: value });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  // The address was changed elsewhere, for example by the back button: it decides.
  const text = typed.of === value ? typed.text : value;
  return (
    <SearchField
      label={label} value={text} {...(width ? { width } : {})}
      onChange={(wanted) => {
        setTyped({ text: wanted, of: value });
        clearTimeout(timer.current);
        timer.current = setTimeout(() => {
          setTyped({ text: wanted, of: wanted });
          setValue(wanted);
        }, TYPING_MS);
      }}
    />
  );
}

const ALL = "all";

/** A choice of one value, or all. The parameter is empty for all. */
export function FilterSelect({ name, label, choices, all }: { name: string; label: string; choices: readonly Choice<string>[]; all?: string }) {
  const t = useText();
  const [value, setValue] = useParam(name);
  const known = value === "" || choices.some((one) => one.value === value) ? choices : [...choices, { value, label: value }];
  return (
    <Select
      label={label} value={value || ALL} onChange={(wanted) => setValue(wanted === ALL ? "" : wanted)}
      choices={[{ value: ALL, label: all ?? `${label}: ${t("common.all")}` }, ...known]}
    />
  );
}

export interface SegmentChoice {
  /** Empty: no filter. */
  value: string;
  label: ReactNode;
  count?: number | undefined;
  /** For screen readers, if `label` is an icon. */
  name?: string;
}

/** Few choices side by side, each with the number of rows that it gives. */
export function Segments({ name, label, choices }: { name: string; label: string; choices: readonly SegmentChoice[] }) {
  const [value, setValue] = useParam(name);
  return (
    <div className={styles.segments} role="group" aria-label={label}>
      {choices.map((one) => (
        <button key={one.value} type="button" className={styles.segment} aria-pressed={one.value === value} aria-label={one.name} title={one.name} onClick={() => setValue(one.value)}>
          {one.label}
          {one.count !== undefined && <span className={styles.count}>{formatNumber(one.count)}</span>}
        </button>
      ))}
    </div>
  );
}

/** A filter that is on or off. */
export function ToggleParam({ name, children, count }: { name: string; children: ReactNode; count?: number | undefined }) {
  const [value, setValue] = useParam(name);
  return (
    <button type="button" className={styles.toggle} aria-pressed={value !== ""} onClick={() => setValue(value ? "" : "1")}>
      {children}
      {count !== undefined && <span className={styles.count}>{formatNumber(count)}</span>}
    </button>
  );
}

/** A value that can be removed: a chosen tag. */
export function RemovableChip({ children, label, onRemove }: { children: ReactNode; label: string; onRemove: () => void }) {
  return (
    <button type="button" className={styles.chip} aria-label={label} title={label} onClick={onRemove}>
      <span className="cut">{children}</span> <X size={12} aria-hidden />
    </button>
  );
}

/** Values of one parameter. Each is encoded, so that it may have commas. */
export function useListParam(name: string): [readonly string[], (values: readonly string[]) => void] {
  const [value, setValue] = useParam(name);
  const values = value ? value.split(",").map(decoded) : [];
  return [values, (wanted) => setValue(wanted.map(encodeURIComponent).join(","))];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
