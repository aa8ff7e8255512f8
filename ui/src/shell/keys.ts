// Keys of the whole page. A page adds its own with `usePageKeys`; the list that `?` opens is made of both.
import { useEffect } from "react";

import type { MessageKey } from "../i18n/keys";

export interface PageKey {
  /** As `KeyboardEvent.key`: `j`, `Enter`, `[`; or two in a row: `g d`. */
  key: string;
  what: MessageKey;
  /** Undefined: the key is handled by the part that has the focus, and only named here. */
  run?: () => void;
}

const pages: (readonly PageKey[])[] = [];

export function shownKeys(): readonly PageKey[] {
  return pages.flat();
}

/** Whether the user is typing a text. Then letters are not shortcuts. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".cm-editor") !== null);
}

let before = "";
let beforeAt = 0;
const PAIR_MS = 1_000;

/** Calls the newest handler of a key. True: there was one. */
export function handleKey(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("[role=dialog]")) return false;
  const pair = Date.now() - beforeAt < PAIR_MS ? `${before} ${event.key}` : "";
  before = event.key;
  beforeAt = Date.now();
  for (const wanted of [pair, event.key]) {
    const found = wanted && [...pages].reverse().flat().find((one) => one.key === wanted && one.run);
    if (found) {
      found.run?.();
      return true;
    }
  }
  return false;
}

/** Adds keys while the component is shown. Pass a memoised array. */
export function usePageKeys(keys: readonly PageKey[]): void {
  useEffect(() => {
    pages.push(keys);
    return () => {
      pages.splice(pages.indexOf(keys), 1);
    };
  }, [keys]);
}
