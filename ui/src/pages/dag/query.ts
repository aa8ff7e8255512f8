import { api, read } from "../../api/client";
import { dagTopic, livePage } from "../../api/query";

/** The header of the pages of a DAG. The answer of the grid contains it too. */
export function headQuery(dagId: string) {
  return livePage(["dag", dagId, "head"], [dagTopic(dagId)], (signal) =>
    read(api.GET("/api/tradewind/v1/dags/{dag_id}", { params: { path: { dag_id: dagId } }, signal })),
  );
}
