// The questions of the page of a task instance.
import { api, read } from "../../api/client";
import { livePage, runTopic, taskTopic, tasksTopic } from "../../api/query";

export interface InstanceOf {
  dagId: string;
  runId: string;
  taskId: string;
  /** Undefined: the first failed instance of a mapped task, else its first; the only one of another. */
  mapIndex: number | undefined;
}

/** A task instance with its tries. */
export function taskQuery({ dagId, runId, taskId, mapIndex }: InstanceOf) {
  const topics = mapIndex === undefined ? [taskTopic(dagId, runId, taskId, -1), taskTopic(dagId, runId, taskId, 0)] : [taskTopic(dagId, runId, taskId, mapIndex)];
  return livePage(["task", dagId, runId, taskId, mapIndex ?? "first"], [...topics, tasksTopic(dagId, runId)], (signal) =>
    read(
      api.GET("/api/tradewind/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}", {
        params: { path: { dag_id: dagId, run_id: runId, task_id: taskId }, query: mapIndex === undefined ? {} : { map_index: mapIndex } }, signal,
      }),
    ),
  );
}

export const MAPPED_PAGE = 100;

/** A page of the instances of a mapped task. */
export function readMapped({ dagId, runId, taskId }: InstanceOf, state: string, offset: number, signal: AbortSignal) {
  return read(
    api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/listMapped", {
      params: {
        path: { dag_id: dagId, dag_run_id: runId, task_id: taskId },
        query: { limit: MAPPED_PAGE, offset, ...(state ? { state: [state] } : {}) },
      },
      signal,
    }),
  );
}

export function mappedKey({ dagId, runId, taskId }: InstanceOf, state: string) {
  return ["mapped", dagId, runId, taskId, state];
}

/** The topics that change the list of mapped instances. */
export function mappedTopics({ dagId, runId }: InstanceOf): string[] {
  return [runTopic(dagId, runId)];
}

/** For `search` of a link: the parameters of the address with these changes; an empty value removes one. */
export function put(changes: Record<string, string>) {
  return (old: Record<string, string | undefined>) => ({ ...old, ...changes });
}
