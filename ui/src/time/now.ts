// The present moment, for ages and running durations: all of them change together, once a second, only while the tab is shown.
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  if (document.hidden) return;
  now = Date.now();
  listeners.forEach((one) => one());
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  timer ??= setInterval(tick, 1000);
  return () => {
    listeners.delete(changed);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Milliseconds since 1970; renders again each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
