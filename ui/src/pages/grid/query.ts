import { api, read } from "../../api/client";
import { dagTopic, live, livePage, queries } from "../../api/query";
import { headQuery } from "../dag/query";
import { merge, type Window } from "./cells";

export function structureQuery(dagId: string) {
  return live(["dag", dagId, "structure"], [], (signal) =>
    read(api.GET("/api/tradewind/v1/dags/{dag_id}/structure", { params: { path: { dag_id: dagId } }, signal })),
  );
}

/** The window of the newest runs. A later request sends the token of the former answer, and gets what has changed. */
export function windowQuery(dagId: string, runs: number, before: string) {
  const key = ["dag", dagId, "cells", runs, before] as const;
  return livePage<Window>(key, [dagTopic(dagId)], async (signal) => {
    const former = queries.getQueryData<Window>(key);
    const query = { runs, head: true, ...(before ? { before } : {}), ...(former ? { since: former.token } : {}) };
    const answer = await read(api.GET("/api/tradewind/v1/dags/{dag_id}/cells", { params: { path: { dag_id: dagId }, query }, signal }));
    const found = merge(former, answer);
    if (found.head) queries.setQueryData(headQuery(dagId).queryKey, found.head);
    if (former && former.version !== found.version) void queries.invalidateQueries({ queryKey: structureQuery(dagId).queryKey });
    return found;
  });
}
