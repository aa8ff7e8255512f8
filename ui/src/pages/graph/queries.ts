// What a graph reads beside the cells of the grid and the run: the structure of a version.
import { api, read } from "../../api/client";
import { live } from "../../api/query";

/** The structure of a version, which never changes. 0: the latest, under the key of the grid, whose cells notice a new version. */
export function structureQuery(dagId: string, version: number) {
  const load = (signal: AbortSignal) =>
    read(api.GET("/api/tradewind/v1/dags/{dag_id}/structure", { params: { path: { dag_id: dagId }, query: version ? { version } : {} }, signal }));
  return { ...live(version ? ["structure", dagId, version] : ["dag", dagId, "structure"], [], load), ...(version ? { staleTime: Infinity } : {}) };
}
