// One stream of changes for all tabs of a browser. The tab that holds the lock reads it and tells the others over a channel.
//
//   server ──events──▶ leading tab ──channel──▶ other tabs
//                          └──────────────────────┴─▶ queries whose topic changed are read again, each at most once a second
//
// Without a stream the shown queries are read every ten seconds, and the bar says so.
import { useSyncExternalStore } from "react";

import { queries } from "./query";

/** `live`: changes arrive at once. `polling`: every ten seconds. `waiting`: the stream is open, but no scheduler answers. */
export type Liveness = "connecting" | "live" | "polling" | "waiting";

type Message = { kind: "names"; names: string[] } | { kind: "all" } | { kind: "state"; state: Liveness };

const POLL_MS = 10_000;
const GATHER_MS = 1_000;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000] as const;

let state: Liveness = "connecting";
let channel: BroadcastChannel | undefined;
let lastRefresh = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let everything = false;
const pending = new Set<string>();
const listeners = new Set<() => void>();

export function useLiveness(): Liveness {
  return useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => state,
  );
}

/** Starts following changes. Called once, after the login. */
export function startLive(): void {
  if (channel) return;
  channel = new BroadcastChannel("tradewind.live");
  channel.onmessage = (event: MessageEvent<Message>) => apply(event.data);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) flushSoon();
  });
  setInterval(() => {
    if (state === "polling" && !document.hidden) apply({ kind: "all" });
  }, POLL_MS);
  void navigator.locks.request("tradewind.live", () => follow());
}

function tell(message: Message): void {
  channel?.postMessage(message);
  apply(message);
}

function apply(message: Message): void {
  if (message.kind === "state") {
    if (message.state !== state) {
      state = message.state;
      listeners.forEach((one) => one());
    }
    return;
  }
  if (message.kind === "all") everything = true;
  else message.names.forEach((name) => pending.add(name));
  flushSoon();
}

/** Reads changed queries again: at once if the last time is a second ago, else when it is. A hidden tab waits until it is shown. */
function flushSoon(): void {
  if (timer !== undefined || document.hidden || (!everything && pending.size === 0)) return;
  timer = setTimeout(flush, Math.max(0, lastRefresh + GATHER_MS - Date.now()));
}

function flush(): void {
  timer = undefined;
  lastRefresh = Date.now();
  const names = new Set(pending);
  const all = everything;
  pending.clear();
  everything = false;
  void queries.invalidateQueries({
    predicate: ({ meta }) => Boolean(meta?.topics?.some((topic) => all || names.has(topic))),
  });
}

/** Reads the stream until the tab is closed. The browser's EventSource hides the reason of an end, so this opens it anew itself. */
async function follow(): Promise<never> {
  let failures = 0;
  let last = "";
  for (;;) {
    const opened = await readStream(last, (id) => {
      last = id;
      failures = 0;
    });
    if (!opened) {
      failures += 1;
      tell({ kind: "state", state: "polling" });
    }
    const wait = failures ? (RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? POLL_MS) : 0;
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** Reads one stream to its end. True: it was open. */
function readStream(after: string, seen: (id: string) => void): Promise<boolean> {
  return new Promise((done) => {
    const source = new EventSource(`/api/tradewind/v1/events${after ? `?after=${encodeURIComponent(after)}` : ""}`);
    let opened = false;
    const on = (kind: string, handle: (data: { changed?: string[]; live?: boolean; resumed?: boolean }) => void): void => {
      source.addEventListener(kind, (event: MessageEvent<string>) => {
        seen(event.lastEventId);
        handle(JSON.parse(event.data) as Parameters<typeof handle>[0]);
      });
    };
    on("hello", (data) => {
      opened = true;
      tell({ kind: "state", state: data.live === false ? "waiting" : "live" });
      if (!data.resumed) tell({ kind: "all" });
    });
    on("change", (data) => tell({ kind: "names", names: data.changed ?? [] }));
    on("resync", () => tell({ kind: "all" }));
    on("live", (data) => tell({ kind: "state", state: data.live ? "live" : "waiting" }));
    source.onerror = () => {
      source.close();
      done(opened);
    };
  });
}
