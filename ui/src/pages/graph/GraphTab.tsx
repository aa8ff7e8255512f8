// The graph of a DAG, with the states of a chosen run: the newest one, or `?run=`.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useMemo } from "react";

import { useAddress, useSetAddress } from "../../address";
import type { Schemas } from "../../api/client";
import { formatNumber, useText } from "../../i18n";
import { Select } from "../../parts/fields";
import { BY_URGENCY, runTypeWord, stateWord } from "../../state/states";
import { StateIcon } from "../../state/StateIcon";
import { momentText } from "../../time/format";
import { useZone } from "../../time/zone";
import type { Column } from "../grid/cells";
import { windowQuery } from "../grid/query";
import { runQuery } from "../run/query";
import type { GraphStates } from "./GraphCanvas";
import { GraphPage, GraphWaiting } from "./GraphPage";
import styles from "./graph.module.css";
import { structureQuery } from "./queries";

const RUNS = 25;
const NO_RUN = "none";

export default function GraphTab() {
  const t = useText();
  const { dagId = "" } = useParams({ strict: false });
  const zone = useZone();
  const wanted = useAddress().run ?? "";
  const set = useSetAddress();
  const cells = useQuery(windowQuery(dagId, RUNS, ""));
  const newest = cells.data?.columns.at(-1)?.run;
  const runId = wanted === NO_RUN ? null : wanted || (newest?.run_id ?? null);
  const inWindow: Column | undefined = cells.data?.columns.find((one) => one.run.run_id === runId);
  // The cells are in the rows of the latest version. A run that was chosen is shown in the version that it has.
  const ownVersion = wanted !== "" && wanted !== NO_RUN && cells.data !== undefined && inWindow?.run.version !== cells.data.version;
  const run = useQuery({ ...runQuery(dagId, wanted), enabled: ownVersion });
  const structure = useQuery({
    ...structureQuery(dagId, ownVersion ? (run.data?.version ?? 0) : 0), enabled: !ownVersion || run.data !== undefined,
    placeholderData: (old) => (old?.dag_id === dagId ? old : undefined),
  });
  const states = useMemo(() => {
    if (!structure.data || structure.isPlaceholderData || wanted === NO_RUN) return null;
    if (ownVersion) return run.data ? runStates(run.data) : null;
    return inWindow && cells.data ? columnStates(cells.data.states, inWindow) : null;
  }, [structure.data, structure.isPlaceholderData, wanted, ownVersion, run.data, inWindow, cells.data]);
  if (!structure.data) return <GraphWaiting query={run.error ? run : structure} />;
  const choices = [
    ...(cells.data?.columns ?? []).toReversed().map(({ run: one }) => ({ value: one.run_id, label: `${momentText(one.run_after, zone, "minute")} · ${runTypeWord(one.run_type)}`, icon: <span className={styles.choiceIcon}><StateIcon state={one.state} decorative /></span> })),
    ...(wanted && wanted !== NO_RUN && cells.data && !inWindow ? [{ value: wanted, label: wanted }] : []),
    { value: NO_RUN, label: t("graph.noRun") },
  ];
  const names = cells.data?.states ?? [];
  const latest = ownVersion ? cells.data.version : undefined;
  const totals: readonly number[] | undefined = ownVersion ? run.data?.totals : inWindow?.run.totals;
  return (
    <GraphPage
      dagId={dagId} structure={structure.data} runId={runId} states={states}
      choice={cells.data && <Select label={t("graph.run")} value={runId ?? NO_RUN} choices={choices} onChange={(value) => set({ run: value === newest?.run_id ? "" : value })} />}
      counts={runId && totals && <Totals dagId={dagId} runId={runId} names={names} totals={totals} />}
      notice={latest && structure.data.version !== latest ? t("graph.otherVersion", { version: structure.data.version, latest }) : undefined}
    />
  );
}

function columnStates(names: readonly string[], { run, cells }: Column): GraphStates {
  return { names, codes: cells, instances: (row) => run.mapped[String(row)]?.reduce((sum, one, at) => (at % 2 ? sum + one : sum), 0) };
}

export function runStates(run: Schemas["PageRun"]): GraphStates {
  return { names: run.states, codes: run.state, instances: (row) => run.instances[row] };
}

/** How many task instances are in which state; each leads to their list. */
export function Totals({ dagId, runId, names, totals }: { dagId: string; runId: string; names: readonly string[]; totals: readonly number[] }) {
  return (
    <>
      {BY_URGENCY.flatMap((state) => {
        const number = totals[names.indexOf(state)] ?? 0;
        return number ? [
          <Link key={state} to="/dags/$dagId/runs/$runId" params={{ dagId, runId }} search={{ state }}>
            <StateIcon state={state} decorative /> {stateWord(state)} <b className="figures">{formatNumber(number)}</b>
          </Link>,
        ] : [];
      })}
    </>
  );
}
