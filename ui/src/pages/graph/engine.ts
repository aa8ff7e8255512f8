// ELK in a worker of its own. It is loaded when the first graph is drawn, and stopped when its layout is no longer needed or takes too long.
import type { ELK } from "elkjs/lib/elk-api";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";

import { elkGraph, layoutOf, type Direction, type Layout } from "./layout";
import type { GraphModel } from "./model";

const DEADLINE_MS = 60_000;
/** The worker that has nothing to do. A second layout at the same time gets a worker of its own. */
let idle: ELK | undefined;

export class LayoutTooSlow extends Error {}

async function worker(): Promise<ELK> {
  const { default: Elk } = await import("elkjs/lib/elk-api");
  const found = idle ?? new Elk({ workerFactory: () => new Worker(workerUrl) });
  idle = undefined;
  return found;
}

/** The layout of a graph. Throws LayoutTooSlow after a minute. */
export async function computeLayout(model: GraphModel, direction: Direction, signal: AbortSignal): Promise<Layout> {
  const elk = await worker();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stopped = new Promise<never>((_, refuse) => {
    timer = setTimeout(() => refuse(new LayoutTooSlow()), DEADLINE_MS);
    signal.addEventListener("abort", () => refuse(new DOMException("The layout is no longer needed.", "AbortError")));
  });
  try {
    const found = layoutOf(await Promise.race([elk.layout(elkGraph(model, direction)), stopped]));
    if (idle) elk.terminateWorker();
    else idle = elk;
    return found;
  } catch (error) {
    elk.terminateWorker();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
