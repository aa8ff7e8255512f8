// The panel of the selected task or group: its state in the run, its neighbours, and the possible actions.
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { FoldVertical, Focus, ScrollText, UnfoldVertical, X } from "lucide-react";
import { useState } from "react";

import { api, read } from "../../api/client";
import { live, runTopic } from "../../api/query";
import { useRefusal } from "../../api/me";
import { formatNumber, useText } from "../../i18n";
import { Button, LinkButton } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import parts from "../../parts/parts.module.css";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { DurationText, TimeText } from "../../time/TimeText";
import { ClearDialog } from "../actions/dialogs";
import type { GraphStates } from "./GraphCanvas";
import { groupCounts, isGroup, isMapped, nameOf, tasksIn, type Neighbours, type Structure } from "./model";
import styles from "./graph.module.css";

/** More neighbours than this are only counted. */
const LISTED = 24;

interface Props {
  dagId: string;
  runId: string | null;
  structure: Structure;
  states: GraphStates | null;
  beside: Neighbours;
  row: number;
  closed: boolean;
  onlyPath: boolean;
  onOnlyPath: () => void;
  onSelect: (row: number) => void;
  onFold: (row: number) => void;
  onClose: () => void;
}

export function GraphPanel({ dagId, runId, structure, states, beside, row, closed, onlyPath, onOnlyPath, onSelect, onFold, onClose }: Props) {
  const t = useText();
  const [clearing, setClearing] = useState(false);
  const refusal = useRefusal("edit:task_instance");
  const group = isGroup(structure, row);
  const id = structure.ids[row] ?? "";
  const code = states?.codes[row] ?? -1;
  const state = code < 0 ? null : (states?.names[code] ?? null);
  const members: string[] = [];
  if (group) for (let one = row + 1; one < (structure.ends[row] ?? 0); one += 1) if (!isGroup(structure, one)) members.push(structure.ids[one] ?? "");
  const doc = structure.docs[String(row)];
  return (
    <aside className={styles.panel} aria-label={t("graph.selection")}>
      <div className={styles.panelBody}>
        <div className={styles.panelHead}>
          <div className="grow">{runId && states ? <StateChip state={state} /> : <span className={parts.badge}>{group ? t("graph.group") : t("common.task")}</span>}</div>
          <Button look="quiet" icon compact label={t("common.close")} onPress={onClose}><X size={14} /></Button>
        </div>
        <div>
          <h2>{nameOf(structure, row)}</h2>
          {id !== nameOf(structure, row) && <p className="mono muted wrap">{id}</p>}
        </div>
        {doc && <p className={`${styles.doc} small`}>{doc}</p>}
        {runId && !group && state && <Instance dagId={dagId} runId={runId} taskId={id} />}
        {group ? (
          <dl className={parts.definition}>
            <dt>{t("graph.members")}</dt>
            <dd className="figures">{formatNumber(tasksIn(structure, row))}</dd>
            {states && runId && (
              <>
                <dt>{t("common.state")}</dt>
                <dd className={styles.links}>
                  {groupCounts(structure, states.codes, row).map(([one, number]) => (
                    <span key={one} className={styles.listName}><StateIcon state={one < 0 ? null : states.names[one]} /> <span className="figures">{formatNumber(number)}</span></span>
                  ))}
                </dd>
              </>
            )}
          </dl>
        ) : (
          <dl className={parts.definition}>
            <dt>{t("graph.operator")}</dt>
            <dd>{structure.operators[structure.operator[row] ?? -1]}</dd>
            <dt>{t("graph.triggerRule")}</dt>
            <dd className="mono">{structure.trigger_rules[structure.trigger_rule[row] ?? -1]}</dd>
            <dt>{t("graph.pool")}</dt>
            <dd><Link to="/pools/$pool" params={{ pool: structure.pools[structure.pool[row] ?? -1] ?? "" }}>{structure.pools[structure.pool[row] ?? -1]}</Link></dd>
            <dt>{t("graph.retries")}</dt>
            <dd className="figures">{structure.retries[row]}</dd>
            {isMapped(structure, row) && (
              <>
                <dt>{t("graph.mapped")}</dt>
                <dd className="figures">{states?.instances(row) !== undefined ? t("graph.instances", { count: states.instances(row) ?? 0 }) : t("common.yes")}</dd>
              </>
            )}
            {structure.setups.includes(row) && (<><dt>{t("graph.role")}</dt><dd>{t("graph.setup")}</dd></>)}
            {structure.teardowns.includes(row) && (<><dt>{t("graph.role")}</dt><dd>{t("graph.teardown")}</dd></>)}
          </dl>
        )}
        {!group && <Neighbour title={t("graph.upstream")} rows={beside.up[row] ?? []} structure={structure} states={states} onSelect={onSelect} />}
        {!group && <Neighbour title={t("graph.downstream")} rows={beside.down[row] ?? []} structure={structure} states={states} onSelect={onSelect} />}
        <div className={styles.links}>
          <Button compact onPress={onOnlyPath}><Focus size={14} aria-hidden /> {onlyPath ? t("graph.showAll") : t("graph.onlyPath")}</Button>
          {group && <Button compact onPress={() => onFold(row)}>{closed ? <UnfoldVertical size={14} aria-hidden /> : <FoldVertical size={14} aria-hidden />} {closed ? t("graph.open") : t("graph.close")}</Button>}
        </div>
      </div>
      {runId && state && (
        <div className={styles.panelFoot}>
          {!group && (
            <LinkButton look="primary" to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId, taskId: id }}>
              <ScrollText size={14} aria-hidden /> {t("common.openLog")}
            </LinkButton>
          )}
          <Button onPress={() => setClearing(true)} refused={refusal}>{t("common.clear")}</Button>
          <CopyAs
            action={{
              command: commandLine("tradewind", "tasks", "clear", dagId, "--task-regex", `^(${(group ? members : [id]).map((one) => one.replaceAll(".", "\\.")).join("|")})$`),
              method: "POST", path: `/api/v2/dags/${encodeURIComponent(dagId)}/clearTaskInstances`, body: { dry_run: false, dag_run_id: runId, task_ids: group ? members : [id], only_failed: false },
            }}
          />
        </div>
      )}
      {clearing && runId && <ClearDialog dagId={dagId} runId={runId} tasks={group ? members : [id]} onClose={() => setClearing(false)} />}
    </aside>
  );
}

/** The start and the duration. Requested only while the panel is open. */
function Instance({ dagId, runId, taskId }: { dagId: string; runId: string; taskId: string }) {
  const t = useText();
  const query = useQuery(live(["page-task", dagId, runId, taskId, "first"], [runTopic(dagId, runId)], (signal) =>
    read(api.GET("/api/tradewind/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}", { params: { path: { dag_id: dagId, run_id: runId, task_id: taskId } }, signal }))));
  const one = query.data?.instance;
  return (
    <dl className={parts.definition} style={{ minHeight: 72 }}>
      <dt>{t("common.started")}</dt>
      <dd>{one ? one.start_date ? <TimeText at={one.start_date} zoned /> : t("graph.notStarted") : ""}</dd>
      <dt>{t("common.duration")}</dt>
      <dd>{one ? one.start_date ? <DurationText start={one.start_date} end={one.end_date} /> : "–" : ""}</dd>
      <dt>{t("graph.try")}</dt>
      <dd className="figures">{one ? t("graph.tryOf", { number: one.try_number, most: Math.max(one.try_number, one.max_tries + 1) }) : ""}</dd>
    </dl>
  );
}

function Neighbour({ title, rows, structure, states, onSelect }: { title: string; rows: readonly number[]; structure: Structure; states: GraphStates | null; onSelect: (row: number) => void }) {
  const t = useText();
  const [all, setAll] = useState(false);
  if (!rows.length) return null;
  const shown = all ? rows : rows.slice(0, LISTED);
  return (
    <section>
      <h3>{title} <span className="muted figures">{formatNumber(rows.length)}</span></h3>
      <div className={styles.links}>
        {shown.map((one) => {
          const code = states?.codes[one] ?? -1;
          return (
            <button key={one} type="button" className={styles.chip} title={structure.ids[one]} onClick={() => onSelect(one)}>
              {code >= 0 && <StateIcon state={states?.names[code]} size={12} />}
              <span className="cut">{nameOf(structure, one)}</span>
            </button>
          );
        })}
        {shown.length < rows.length && <Button look="quiet" compact onPress={() => setAll(true)}>{t("common.more")}</Button>}
      </div>
    </section>
  );
}
