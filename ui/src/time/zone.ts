// The zone in which times are shown: UTC, the browser's, or the DAG's. Part of every page, kept for the next visit.
import { useSyncExternalStore } from "react";

export type ZoneChoice = "utc" | "local" | "dag";
const STORED = "tradewind.zone";
const listeners = new Set<() => void>();

let choice: ZoneChoice = ((): ZoneChoice => {
  const stored = localStorage.getItem(STORED);
  return stored === "local" || stored === "dag" ? stored : "utc";
})();
let dagZone: string | null = null;

export const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function setZoneChoice(wanted: ZoneChoice): void {
  choice = wanted;
  localStorage.setItem(STORED, wanted);
  listeners.forEach((one) => one());
}

/** Names the zone of the DAG that is open, null: none. */
export function setDagZone(zone: string | null): void {
  if (zone === dagZone) return;
  dagZone = zone;
  listeners.forEach((one) => one());
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

export function useZoneChoice(): ZoneChoice {
  return useSyncExternalStore(subscribe, () => choice);
}

/** The IANA name of the zone in which times are shown. */
export function useZone(): string {
  return useSyncExternalStore(subscribe, currentZone);
}

export function currentZone(): string {
  if (choice === "local") return LOCAL;
  return choice === "dag" && dagZone ? dagZone : "UTC";
}
