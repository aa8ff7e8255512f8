// The queries of the pages of a run.
import { queryOptions } from "@tanstack/react-query";

import { api, read } from "../../api/client";
import { livePage, queries, runTopic } from "../../api/query";

/** A run with a summary of each task, in the rows of the structure of its version. The first answer for a DAG brings the structure too. */
export function runQuery(dagId: string, runId: string) {
  return livePage(["run", dagId, runId], [runTopic(dagId, runId)], async (signal) => {
    const known = queries.getQueryCache().findAll({ queryKey: ["structure", dagId] }).filter((one) => one.state.data !== undefined).at(-1)?.queryKey[2];
    const query = { structure: true, ...(typeof known === "number" ? { known_version: known } : {}) };
    const answer = await read(api.GET("/api/tradewind/v1/dags/{dag_id}/runs/{run_id}", { params: { path: { dag_id: dagId, run_id: runId }, query }, signal }));
    if (answer.structure) queries.setQueryData(versionQuery(dagId, answer.version).queryKey, answer.structure);
    return answer;
  });
}

/** The rows of one version of a DAG. They never change. */
export function versionQuery(dagId: string, version: number) {
  return queryOptions({
    queryKey: ["structure", dagId, version],
    queryFn: ({ signal }) => read(api.GET("/api/tradewind/v1/dags/{dag_id}/structure", { params: { path: { dag_id: dagId }, query: { version } }, signal })),
    staleTime: Infinity,
  });
}
