// The question that a task instance asks persons, above the reasons for its waiting.
import { useQuery } from "@tanstack/react-query";

import { api, read } from "../../api/client";
import { live, taskTopic, tasksTopic } from "../../api/query";
import { QuestionCard } from "../approvals/QuestionCard";
import card from "../approvals/approvals.module.css";

interface Props {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
}

export function TaskQuestion({ dagId, runId, taskId, mapIndex }: Props) {
  const query = useQuery(
    live(["approvals", "task", dagId, runId, taskId, mapIndex], [taskTopic(dagId, runId, taskId, mapIndex), tasksTopic(dagId, runId)], (signal) =>
      read(api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/hitlDetails", {
        signal, params: { path: { dag_id: dagId, dag_run_id: runId }, query: { task_id: taskId, map_index: mapIndex, response_received: false, limit: 1 } },
      }))),
  );
  const question = query.data?.hitl_details[0];
  return question ? <section className={card.card} aria-label={question.subject}><QuestionCard question={question} /></section> : null;
}
