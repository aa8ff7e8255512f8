// The graph of one run, in the version of the DAG that the run has.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";

import { runQuery } from "../run/query";
import { GraphPage, GraphWaiting } from "./GraphPage";
import { runStates, Totals } from "./GraphTab";
import { structureQuery } from "./queries";

export default function RunGraphTab() {
  const { dagId = "", runId = "" } = useParams({ strict: false });
  const run = useQuery(runQuery(dagId, runId));
  const structure = useQuery({ ...structureQuery(dagId, run.data?.version ?? 0), enabled: run.data !== undefined });
  const states = useMemo(() => (run.data ? runStates(run.data) : null), [run.data]);
  if (!run.data || !structure.data) return <GraphWaiting query={run.error ? run : structure} />;
  return (
    <GraphPage dagId={dagId} structure={structure.data} runId={runId} states={states} counts={<Totals dagId={dagId} runId={runId} names={run.data.states} totals={run.data.totals} />} />
  );
}
