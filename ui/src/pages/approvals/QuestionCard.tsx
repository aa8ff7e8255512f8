// One question of a task to persons, with the form of its answer.
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useMe, useRefusal } from "../../api/me";
import { enc, queries } from "../../api/query";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Checkbox, Select, TextField } from "../../parts/fields";
import { errorText, Notice } from "../../parts/status";
import { To } from "../../parts/To";
import { toast } from "../../parts/toast";
import { StateIcon } from "../../state/StateIcon";
import { AgoText } from "../../time/TimeText";
import styles from "./approvals.module.css";
import { fieldsOf, inputOf, type Field } from "./form";

type Question = Schemas["HitlDetailView"];

export function keyOf(one: Question): string {
  const task = one.task_instance;
  return [task.dag_id, task.dag_run_id, task.task_id, task.map_index, task.try_number].join("\n");
}

export function QuestionCard({ question }: { question: Question }) {
  const t = useText();
  const task = question.task_instance;
  const href = `/dags/${enc(task.dag_id)}/runs/${enc(task.dag_run_id)}/tasks/${enc(task.task_id)}${task.map_index < 0 ? "" : `?map=${task.map_index}`}`;
  const options = question.chosen_options?.join(", ") ?? "";
  return (
    <>
      <header className={styles.head}>
        <StateIcon state={task.state} size={18} />
        <h2 className="wrap">{question.subject}</h2>
        <span className="muted small"><AgoText at={question.responded_at ?? question.created_at} /></span>
      </header>
      <p className={styles.from}>
        <To className="cut" href={`/dags/${enc(task.dag_id)}`} title={task.dag_id}>{task.dag_id}</To>
        <To className="cut" href={href} title={task.task_id}>{task.map_index < 0 ? task.task_id : `${task.task_id} [${task.map_index}]`}</To>
        <span className="muted cut" title={task.dag_run_id}>{task.dag_run_id}</span>
      </p>
      {question.body && <p className={styles.text}>{question.body}</p>}
      {question.response_received
        ? <p><b>{question.responded_by_user ? t("approvals.answeredBy", { name: question.responded_by_user.name, options }) : t("approvals.answeredAuto", { options })}</b></p>
        : <Answer question={question} />}
    </>
  );
}

function Answer({ question }: { question: Question }) {
  const t = useText();
  const me = useMe();
  const task = question.task_instance;
  const fields = useMemo(() => fieldsOf(question.params), [question.params]);
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() => Object.fromEntries(fields.map((one) => [one.name, one.value])));
  const [chosen, setChosen] = useState<readonly string[]>(question.multiple ? (question.defaults ?? []) : []);
  const [pending, setPending] = useState("");
  const [problem, setProblem] = useState("");
  const names = question.assigned_users.map((one) => one.name || one.id);
  const asked = names.length === 0 || question.assigned_users.some((one) => one.id === me?.username || one.name === me?.username);
  const { input, wrong } = inputOf(fields, values);
  const refusal = useRefusal("edit:task_instance") ?? (asked ? undefined : t("approvals.otherAsked", { names: names.join(", ") })) ?? (wrong ? t("approvals.fieldWrong") : undefined);
  const path = { dag_id: task.dag_id, dag_run_id: task.dag_run_id, task_id: task.task_id, map_index: task.map_index };

  async function send(options: readonly string[]): Promise<void> {
    setPending(options.join());
    setProblem("");
    try {
      await read(api.PATCH("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/{map_index}/hitlDetails", {
        params: { path }, body: { chosen_options: [...options], params_input: input },
      }));
      toast(t("approvals.done", { options: options.join(", ") }));
      await queries.invalidateQueries({ queryKey: ["approvals"] });
    } catch (error) {
      setProblem(errorText(error));
    }
    setPending("");
  }

  const first = question.defaults?.[0] ?? question.options[0];
  const example = question.multiple && chosen.length ? chosen : [first ?? ""];
  return (
    <form className={styles.form} onSubmit={(event) => event.preventDefault()}>
      {fields.map((one) => <FormField key={one.name} field={one} value={values[one.name] ?? ""} wrong={wrong === one.name} onChange={(value) => setValues({ ...values, [one.name]: value })} />)}
      {question.multiple && (
        <div className={styles.options} role="group" aria-label={t("approvals.choose")}>
          {question.options.map((option) => (
            <Checkbox key={option} selected={chosen.includes(option)} onChange={(is) => setChosen(is ? [...chosen, option] : chosen.filter((one) => one !== option))}>{option}</Checkbox>
          ))}
        </div>
      )}
      {!asked && <p className="muted">{t("approvals.otherAsked", { names: names.join(", ") })}</p>}
      {problem && <Notice>{problem}</Notice>}
      <div className={styles.actions}>
        {question.multiple ? (
          <Button look="primary" pending={pending !== ""} refused={refusal ?? (chosen.length ? undefined : t("approvals.chooseFirst"))} onPress={() => void send(chosen)}>{t("approvals.answer")}</Button>
        ) : (
          question.options.map((option) => (
            <Button key={option} look={option === first ? "primary" : "plain"} pending={pending === option} refused={refusal} onPress={() => void send([option])}>{option}</Button>
          ))
        )}
        <CopyAs
          action={{
            command: commandLine(
              "tradewind", "hitl", "respond", task.dag_id, task.task_id, task.dag_run_id, ...(task.map_index < 0 ? [] : ["--map-index", String(task.map_index)]),
              ...example.flatMap((one) => ["--option", one]), ...(fields.length ? ["--params", JSON.stringify(input)] : []),
            ),
            method: "PATCH",
            path: `/api/v2/dags/${enc(task.dag_id)}/dagRuns/${enc(task.dag_run_id)}/taskInstances/${enc(task.task_id)}/${task.map_index}/hitlDetails`,
            body: { chosen_options: example, params_input: input },
          }}
        />
      </div>
    </form>
  );
}

function FormField({ field, value, wrong, onChange }: { field: Field; value: string; wrong: boolean; onChange: (value: string) => void }) {
  const t = useText();
  if (field.kind === "boolean") return <Checkbox selected={value === "true"} onChange={(is) => onChange(String(is))}>{field.title}</Checkbox>;
  if (field.kind === "choice") {
    return <Select labelled label={field.title} value={value} choices={field.choices.map((one) => ({ value: one, label: one }))} onChange={onChange} hint={field.description} />;
  }
  return (
    <TextField
      label={field.title} value={value} onChange={onChange} hint={field.description} error={wrong ? t("approvals.fieldWrong") : undefined}
      type={field.kind === "number" ? "number" : "text"} {...(field.kind === "json" ? { lines: 3, mono: true } : {})}
      {...(field.min !== undefined ? { min: field.min } : {})} {...(field.max !== undefined ? { max: field.max } : {})} {...(field.kind === "number" ? { step: "any" } : {})}
    />
  );
}
