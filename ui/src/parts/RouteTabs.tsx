// The tabs of a page whose tabs are addresses. The open tab is found by its route, not by its address: ids in an address may be
// percent-encoded in more than one way.
import { Link, useMatches } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import { useText } from "../i18n";
import type { MessageKey } from "../i18n/keys";
import parts from "./parts.module.css";

interface Props {
  label: string;
  /** The route of the page, with the names of its parameters: `/dags/$dagId`. */
  base: string;
  params: Record<string, string>;
  /** `to` is added to `base`; empty for the first tab. */
  tabs: readonly { to: string; text: MessageKey }[];
}

export function RouteTabs({ label, base, params, tabs }: Props) {
  const t = useText();
  const open = useMatches({ select: (matches) => matches.at(-1)?.fullPath.replace(/\/$/, "") });
  const strip = useRef<HTMLElement>(null);
  // On a phone the tabs are wider than the screen.
  useEffect(() => {
    const tab = strip.current?.querySelector<HTMLElement>("[aria-current=page]");
    if (strip.current && tab) strip.current.scrollLeft = tab.offsetLeft - strip.current.offsetLeft - (strip.current.clientWidth - tab.offsetWidth) / 2;
  }, [open]);
  return (
    <nav ref={strip} className={parts.tabs} aria-label={label}>
      {tabs.map((one) => (
        <Link
          key={one.to} to={base + one.to} params={params as never} className={parts.tab} activeOptions={{ exact: true, includeSearch: false }}
          aria-current={open === base + one.to ? "page" : undefined}
        >
          {t(one.text)}
        </Link>
      ))}
    </nav>
  );
}
