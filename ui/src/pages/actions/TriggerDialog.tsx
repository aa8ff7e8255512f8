// Triggers a run: a form made from the params of the DAG, the same as JSON, and the values of former runs.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { api, read } from "../../api/client";
import { tOr, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Dialog } from "../../parts/Dialog";
import { Checkbox, Select, Switch, TextField } from "../../parts/fields";
import parts from "../../parts/parts.module.css";
import { ErrorState, fieldErrors, Loading, Notice } from "../../parts/status";
import { toast } from "../../parts/toast";
import { headQuery } from "../dag/query";
import styles from "./actions.module.css";
import type { DialogProps } from "./props";
import { PresetBar } from "./PresetBar";
import { fieldOf, textOf, valueOf, withValues, type Field, type Param } from "./schema";

type Texts = Readonly<Record<string, string>>;

export function TriggerDialog({ dagId, onClose }: DialogProps) {
  const t = useText();
  const head = useQuery(headQuery(dagId));
  if (!head.data) {
    return (
      <Dialog title={t("actions.triggerTitle", { dag: dagId })} onClose={onClose}>
        {head.error ? <ErrorState error={head.error} retry={() => void head.refetch()} /> : <Loading lines={4} />}
      </Dialog>
    );
  }
  return <TriggerForm dagId={dagId} onClose={onClose} params={(head.data.details.params ?? {})} paused={head.data.details.is_paused} />;
}

function TriggerForm({ dagId, onClose, params, paused }: DialogProps & { params: Record<string, Param>; paused: boolean }) {
  const t = useText();
  const navigate = useNavigate();
  const fields = useMemo(() => Object.entries(params).map(([name, param]) => fieldOf(name, param)), [params]);
  const defaults = useMemo<Texts>(() => Object.fromEntries(fields.map((one) => [one.name, textOf(one.kind, params[one.name]?.value)])), [fields, params]);
  const [texts, setTexts] = useState(defaults);
  const [asJson, setAsJson] = useState(fields.length === 0);
  const [json, setJson] = useState("{}");
  const [runId, setRunId] = useState("");
  const [date, setDate] = useState("");
  const [partition, setPartition] = useState("");
  const [note, setNote] = useState("");
  const [unpause, setUnpause] = useState(paused);
  const earlier = useEarlierValues(dagId);
  const problems: Record<string, string> = {};
  const conf: Record<string, unknown> = {};
  for (const field of fields) {
    const parsed = valueOf(field, texts[field.name] ?? "");
    if (!parsed.ok) problems[field.name] = t(parsed.problem === "json" ? "actions.notJson" : "actions.notNumber");
    else if (texts[field.name] !== defaults[field.name]) conf[field.name] = parsed.value;
  }
  let jsonConf: Record<string, unknown> | null = null;
  try {
    const parsed: unknown = JSON.parse(json || "{}");
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) jsonConf = parsed as Record<string, unknown>;
  } catch {
    // The field says that its text is no JSON object.
  }
  const sent = asJson ? (jsonConf ?? {}) : conf;
  const body = { logical_date: date ? `${date}:00Z` : null, conf: sent, ...(runId ? { dag_run_id: runId } : {}), ...(partition ? { partition_key: partition } : {}), ...(note ? { note } : {}) };
  const trigger = useMutation({
    mutationFn: async () => {
      if (paused && unpause) await read(api.PATCH("/api/v2/dags/{dag_id}", { params: { path: { dag_id: dagId } }, body: { is_paused: false } }));
      return read(api.POST("/api/v2/dags/{dag_id}/dagRuns", { params: { path: { dag_id: dagId } }, body }));
    },
    onSuccess: (run) => {
      toast(t("actions.triggered", { run: run.dag_run_id }));
      onClose();
      void navigate({ to: "/dags/$dagId/runs/$runId", params: { dagId, runId: run.dag_run_id } });
    },
  });
  const refusals = fieldErrors(trigger.error);
  const broken = asJson ? jsonConf === null : Object.keys(problems).length > 0;
  const sections = [...new Set(fields.map((one) => one.section))];

  function switchForm(toJson: boolean): void {
    if (toJson) setJson(JSON.stringify(conf, null, 2));
    else if (jsonConf) {
      const given = jsonConf;
      setTexts({ ...defaults, ...Object.fromEntries(fields.filter((one) => one.name in given).map((one) => [one.name, textOf(one.kind, given[one.name])])) });
    }
    setAsJson(toJson);
  }

  /** Fills the form with these values, and with the defaults of the other params. */
  function takeValues(given: Record<string, unknown>): void {
    setJson(JSON.stringify(given, null, 2));
    setTexts({ ...defaults, ...Object.fromEntries(fields.filter((one) => one.name in given).map((one) => [one.name, textOf(one.kind, given[one.name])])) });
    if (Object.keys(given).some((name) => !(name in params))) setAsJson(true); // the form has no field for it
  }

  return (
    <Dialog
      title={t("actions.triggerTitle", { dag: dagId })} onClose={onClose}
      foot={
        <>
          <CopyAs action={{ command: commandLine("tradewind", "dags", "trigger", dagId, Object.keys(sent).length > 0 && "--conf", Object.keys(sent).length > 0 && JSON.stringify(sent), runId && "--run-id", runId, partition && "--partition-key", partition, date && "--logical-date", date), method: "POST", path: `/api/v2/dags/${encodeURIComponent(dagId)}/dagRuns`, body }} />
          <span className="grow" />
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" form="trigger" pending={trigger.isPending} refused={broken ? t("actions.fixFirst") : undefined}>{t("dag.trigger")}</Button>
        </>
      }
    >
      <form
        id="trigger" className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!broken && !trigger.isPending) trigger.mutate();
        }}
      >
        {trigger.error && <ErrorState error={trigger.error} />}
        {paused && (
          <Notice>
            <p>{t("actions.pausedNotice")}</p>
            <Checkbox selected={unpause} onChange={setUnpause}>{t("actions.unpause")}</Checkbox>
          </Notice>
        )}
        <div className={styles.valuesHead}>
          {fields.length > 0 && (
            <div className={parts.tabs} role="tablist" aria-label={t("actions.params")}>
              <button type="button" role="tab" className={parts.tab} aria-selected={!asJson} onClick={() => switchForm(false)}>{t("actions.form")}</button>
              <button type="button" role="tab" className={parts.tab} aria-selected={asJson} onClick={() => switchForm(true)}>JSON</button>
            </div>
          )}
          <PresetBar dagId={dagId} earlier={earlier} conf={asJson ? jsonConf : broken ? null : conf} onTake={takeValues} />
        </div>
        {asJson ? (
          <TextField label={t("actions.conf")} lines={8} mono value={json} onChange={setJson} error={jsonConf === null ? t("actions.notObject") : refusals.conf} hint={t("actions.confHint")} />
        ) : (
          sections.map((section) => (
            <fieldset key={section} className={styles.section}>
              {section && <legend>{section}</legend>}
              {fields.filter((one) => one.section === section).map((one) => (
                <ParamField key={one.name} field={one} text={texts[one.name] ?? ""} error={problems[one.name] ?? refusals[`conf.${one.name}`]} onChange={(text) => setTexts({ ...texts, [one.name]: text })} />
              ))}
            </fieldset>
          ))
        )}
        <details className={styles.more}>
          <summary>{t("actions.moreOptions")}</summary>
          <div className={styles.fields}>
            <TextField label={t("actions.logicalDate")} type="datetime-local" value={date} onChange={setDate} hint={t("actions.logicalDateHint")} error={refusals.logical_date} />
            <TextField label={t("actions.partitionKey")} value={partition} onChange={setPartition} hint={t("actions.partitionKeyHint")} error={refusals.partition_key} />
            <TextField label={t("actions.runId")} value={runId} onChange={setRunId} hint={t("actions.runIdHint")} error={refusals.dag_run_id} />
          </div>
          <TextField label={t("actions.runNote")} value={note} onChange={setNote} lines={2} />
        </details>
      </form>
    </Dialog>
  );
}

/** The newest runs that were started with values, the same values once. */
function useEarlierValues(dagId: string) {
  const query = useQuery({
    queryKey: ["dag", dagId, "earlier-values"],
    queryFn: ({ signal }) => read(api.GET("/api/v2/dags/{dag_id}/dagRuns", { params: { path: { dag_id: dagId }, query: { run_type: ["manual"], order_by: ["-run_after"], limit: 25 } }, signal })),
    staleTime: 0,
  });
  return useMemo(() => withValues(query.data?.dag_runs ?? []), [query.data]);
}

interface ParamProps {
  field: Field;
  text: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

function ParamField({ field, text, error, onChange }: ParamProps) {
  const t = useText();
  const { schema, title, help, kind } = field;
  const shared = { label: field.required ? `${title} *` : title, hint: help || undefined, error, value: text, onChange };
  if (kind === "boolean") {
    return (
      <div className={parts.field}>
        <Switch selected={text === "true"} onChange={(on) => onChange(String(on))}>{title}</Switch>
        {help && <span className={parts.hint}>{help}</span>}
      </div>
    );
  }
  if (kind === "choice") {
    const choices = (schema.enum ?? []).map((one) => {
      const value = one === null ? "" : typeof one === "string" ? one : JSON.stringify(one);
      return { value, label: schema.values_display?.[value] ?? (value || t("common.none")) };
    });
    return <Select label={shared.label} labelled hint={error ?? shared.hint} value={text} onChange={onChange} choices={choices} />;
  }
  if (kind === "choices") {
    let chosen: unknown[] = [];
    try {
      const parsed: unknown = JSON.parse(text || "[]");
      if (Array.isArray(parsed)) chosen = parsed;
    } catch {
      // A text that is no list chooses nothing.
    }
    return (
      <div className={parts.field} role="group" aria-label={title}>
        <span className={parts.label}>{shared.label}</span>
        {(schema.examples ?? []).map((one) => (
          <Checkbox key={JSON.stringify(one)} selected={chosen.includes(one)} onChange={(on) => onChange(JSON.stringify(on ? [...chosen, one] : chosen.filter((other) => other !== one)))}>
            {schema.values_display?.[String(one)] ?? String(one)}
          </Checkbox>
        ))}
        {(error ?? help) && <span className={error ? parts.wrong : parts.hint}>{error ?? help}</span>}
      </div>
    );
  }
  if (kind === "fixed") return <TextField {...shared} readOnly mono />;
  if (kind === "lines" || kind === "json") return <TextField {...shared} lines={kind === "lines" ? 4 : 3} mono={kind === "json"} />;
  if (kind === "number") return <TextField {...shared} type="number" step="any" {...(schema.minimum === undefined ? {} : { min: schema.minimum })} {...(schema.maximum === undefined ? {} : { max: schema.maximum })} />;
  const type = kind === "date" ? "date" : kind === "date-time" ? "datetime-local" : kind === "time" ? "time" : "text";
  return <TextField {...shared} type={type} placeholder={schema.examples ? tOr("actions.forExample", "", { value: String(schema.examples[0]) }) : ""} />;
}
