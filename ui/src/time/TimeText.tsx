// Moments and durations in texts. The full moment with its zone is in the title of each.
import { language, useLanguage, useText } from "../i18n";
import { durationText, isDue, momentText, relativeText, secondsBetween, zoneName } from "./format";
import { useNow } from "./now";
import { useZone } from "./zone";

interface TimeProps {
  at: string | null | undefined;
  precision?: "second" | "minute" | "day";
  /** Shows the zone behind the moment. */
  zoned?: boolean;
}

/** `2026-11-22 02:00:07`; nothing for null. */
export function TimeText({ at, precision = "second", zoned = false }: TimeProps) {
  const zone = useZone();
  if (!at) return null;
  const name = zoneName(zone, Date.parse(at));
  return (
    <time dateTime={at} title={`${momentText(at, zone)} ${name}`} className="figures">
      {momentText(at, zone, precision)}
      {zoned && <span className="muted"> {name}</span>}
    </time>
  );
}

/** `12 minutes ago`. */
export function AgoText({ at }: { at: string | null | undefined }) {
  const zone = useZone();
  const now = useNow();
  useLanguage();
  if (!at) return null;
  return (
    <time dateTime={at} title={`${momentText(at, zone)} ${zoneName(zone, Date.parse(at))}`} className="figures">
      {relativeText(at, now, language())}
    </time>
  );
}

/** When something is due: `in 5 hours`, or `due now` from that moment on, for example while past dates are caught up. */
export function DueText({ at }: { at: string | null | undefined }) {
  const zone = useZone();
  const now = useNow();
  const t = useText();
  if (!at || !isDue(at, now)) return <AgoText at={at} />;
  return <time dateTime={at} title={`${momentText(at, zone)} ${zoneName(zone, Date.parse(at))}`}>{t("common.dueNow")}</time>;
}

/** The time between two moments, or a number of seconds. With a start and no end it grows. */
export function DurationText({ start, end, seconds }: { start?: string | null; end?: string | null; seconds?: number | null }) {
  if (seconds !== undefined && seconds !== null) return <span className="figures">{durationText(seconds)}</span>;
  if (!start) return null;
  return end ? <span className="figures">{durationText(secondsBetween(start, end, 0))}</span> : <GrowingText start={start} />;
}

function GrowingText({ start }: { start: string }) {
  const now = useNow();
  const seconds = secondsBetween(start, null, now);
  return <span className="figures">{seconds < 10 ? `${Math.floor(seconds)}s` : durationText(seconds)}</span>;
}
