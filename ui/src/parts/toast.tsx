// Short messages about the result of an action, at the lower right. Errors stay until they are closed; others leave after eight seconds.
import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useSyncExternalStore, type ReactNode } from "react";

import { t } from "../i18n";
import { Button } from "./Button";
import { errorText } from "./status";
import styles from "./parts.module.css";

interface Toast {
  id: number;
  text: ReactNode;
  failed: boolean;
}

const SHOWN_MS = 8_000;
const MOST = 4;
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(wanted: readonly Toast[]): void {
  toasts = wanted.slice(-MOST);
  listeners.forEach((one) => one());
}

function close(id: number): void {
  set(toasts.filter((one) => one.id !== id));
}

export function toast(text: ReactNode): void {
  const id = ++last;
  set([...toasts, { id, text, failed: false }]);
  setTimeout(() => close(id), SHOWN_MS);
}

export function toastError(error: unknown): void {
  set([...toasts, { id: ++last, text: errorText(error), failed: true }]);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => toasts,
  );
  return (
    <div className={styles.toasts} role="log" aria-live="polite">
      {shown.map((one) => (
        <div key={one.id} className={styles.toast}>
          {one.failed ? <CircleAlert size={16} className="danger" /> : <CircleCheck size={16} />}
          <div className="grow">{one.text}</div>
          <Button look="quiet" compact icon label={t("common.close")} onPress={() => close(one.id)}>
            <X size={14} />
          </Button>
        </div>
      ))}
    </div>
  );
}
