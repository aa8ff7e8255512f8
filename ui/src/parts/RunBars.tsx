// The last runs of a DAG as bars: the height is the duration, the colour the state, and a failed run has its glyph too.
import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { stateColour, stateOf, stateWord } from "../state/states";
import { durationText, momentText } from "../time/format";
import { currentZone } from "../time/zone";
import styles from "./bars.module.css";

const HEIGHT = 22;

export function RunBars({ dagId, runs, count = 14 }: { dagId: string; runs: readonly Schemas["RunBar"][]; count?: number }) {
  const shown = runs.slice(-count);
  const longest = Math.max(1, ...shown.map((one) => one.duration ?? 0));
  return (
    <span className={styles.bars} style={{ width: count * 9 }}>
      {shown.map((one) => {
        const state = stateOf(one.state);
        const share = one.duration === null ? 0.5 : Math.sqrt(one.duration / longest);
        const text = [stateWord(one.state), momentText(one.run_after, currentZone(), "minute"), one.duration === null ? "" : durationText(one.duration)];
        return (
          <Link
            key={one.run_id} to="/dags/$dagId/runs/$runId" params={{ dagId, runId: one.run_id }} className={styles.bar} tabIndex={-1}
            title={text.filter(Boolean).join(" · ")} aria-label={text.filter(Boolean).join(", ")}
          >
            <i data-state={state} style={{ height: Math.max(4, Math.round(share * HEIGHT)), backgroundColor: stateColour(state) }} />
          </Link>
        );
      })}
    </span>
  );
}
