// The grid of a DAG: tasks × runs, the newest run at the right. The canvas shows the cells; for screen readers and keys there is one
// focused element with the active cell as its text.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { ChevronLeft, ChevronsRight, FoldVertical, Play, UnfoldVertical } from "lucide-react";
import { useMemo, useState } from "react";

import { useAddress, useParam, useSetAddress } from "../../address";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { SearchField, Select } from "../../parts/fields";
import { EmptyState, ErrorState, Loading } from "../../parts/status";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateIcon } from "../../state/StateIcon";
import { BY_URGENCY, stateWord } from "../../state/states";
import { TriggerDialog } from "../actions/dialogs";
import { Aside } from "./Aside";
import { nextCell, totals, type Window } from "./cells";
import { GridView, type Sought } from "./GridView";
import styles from "./grid.module.css";
import { structureQuery, windowQuery } from "./query";
import { foldText, groupsOf, MAPPED, namesWidth, readFolds, shownRows, TASK, type Structure } from "./rows";

const COUNTS = ["25", "50", "100", "366"] as const;

export default function GridTab() {
  const { dagId } = useParams({ from: "/shell/dags/$dagId" });
  const [runs] = useParam("runs", "50");
  const [before] = useParam("before");
  const structure = useQuery(structureQuery(dagId));
  const cells = useQuery({ ...windowQuery(dagId, Number(runs) || 50, before), placeholderData: (old) => (old?.head?.details.dag_id === dagId ? old : undefined) });
  const error = structure.error ?? cells.error;
  if (!structure.data || !cells.data || structure.data.ids.length !== cells.data.rows) {
    if (error) return <ErrorState error={error} retry={() => void Promise.all([structure.refetch(), cells.refetch()])} />;
    return <Loading lines={16} />;
  }
  return (
    <div className={styles.tab}>
      {error && <ErrorState error={error} retry={() => void cells.refetch()} />}
      <Grid dagId={dagId} structure={structure.data} window={cells.data} />
    </div>
  );
}

function Grid({ dagId, structure, window: shown }: { dagId: string; structure: Structure; window: Window }) {
  const t = useText();
  const navigate = useNavigate();
  const address = useAddress();
  const set = useSetAddress();
  const [filter, setFilter] = useParam("filter");
  const [runs, setRuns] = useParam("runs", "50");
  const folds = address.fold ?? "";
  const rows = useMemo(() => shownRows(structure, readFolds(folds), filter), [structure, folds, filter]);
  const longest = useMemo(() => namesWidth(structure), [structure]);
  const hasGroups = useMemo(() => groupsOf(structure).length > 0, [structure]);
  const [trigger, setTrigger] = useState(false);
  const [sought, setSought] = useState<Sought | null>(null);
  const chosenRun = address.run ?? "";
  const chosenTask = address.task ?? "";
  const keys = useMemo<PageKey[]>(
    () => [
      { key: "↑ ↓ ← →", what: "grid.keyMove" }, { key: "PageUp PageDown", what: "grid.keyPage" }, { key: "Home End", what: "grid.keyEnds" },
      { key: "[", what: "grid.keyPrevious" }, { key: "]", what: "grid.keyNext" }, { key: "Space", what: "grid.keyFold" }, { key: "Enter", what: "grid.keyOpen" },
    ],
    [],
  );
  usePageKeys(keys);

  function fold(id: string): void {
    const all = folds === "*" ? groupsOf(structure) : folds.split(",").filter(Boolean).map(decodeURIComponent);
    set({ fold: foldText(all.includes(id) ? all.filter((one) => one !== id) : [...all, id]) });
  }

  function seek(state: string): void {
    const after = { row: structure.ids.indexOf(chosenTask), column: shown.columns.findIndex((one) => one.run.run_id === chosenRun) };
    const found = nextCell(shown, (row) => structure.kinds[row] === TASK || structure.kinds[row] === MAPPED, shown.states.indexOf(state), after);
    if (!found) return;
    const around = new Set<string>();
    for (let parent = structure.parents[found.row] ?? -1; parent >= 0; parent = structure.parents[parent] ?? -1) around.add(structure.ids[parent] ?? "");
    const folded = folds === "*" ? groupsOf(structure) : folds.split(",").filter(Boolean).map(decodeURIComponent);
    const target = { task: structure.ids[found.row] ?? "", run: shown.columns[found.column]?.run.run_id ?? "" };
    set({ ...target, fold: foldText(folded.filter((one) => !around.has(one))), filter: "" });
    setSought(target);
  }

  if (!shown.columns.length) {
    return (
      <EmptyState icon={<Play size={28} />} title={t("grid.empty")}>
        <p>{t("grid.emptyText")}</p>
        <Button look="primary" onPress={() => setTrigger(true)}>{t("grid.first")}</Button>
        {trigger && <TriggerDialog dagId={dagId} onClose={() => setTrigger(false)} />}
      </EmptyState>
    );
  }
  return (
    <>
      <div className={styles.toolbar}>
        <SearchField label={t("grid.filter")} value={filter} onChange={setFilter} width={184} />
        <span className={`${styles.tasks} muted figures`}>{t("grid.size", { tasks: formatNumber(structure.task_count), runs: formatNumber(shown.columns.length) })}</span>
        {hasGroups && (
          <Button compact icon label={t(folds ? "grid.unfoldAll" : "grid.foldAll")} onPress={() => set({ fold: folds ? "" : "*" })}>{folds ? <UnfoldVertical size={14} /> : <FoldVertical size={14} />}</Button>
        )}
        <span className={styles.window}>
          {shown.older && <Button look="quiet" compact icon label={t("grid.older")} onPress={() => set({ before: shown.columns[0]?.run.run_id ?? "" }, true)}><ChevronLeft size={16} /></Button>}
          <Select label={t("grid.runs")} compact value={runs} onChange={setRuns} choices={COUNTS.map((value) => ({ value, label: t("grid.lastRuns", { count: Number(value) }) }))} />
          {address.before && <Button look="quiet" compact icon label={t("grid.newest")} onPress={() => set({ before: "" }, true)}><ChevronsRight size={16} /></Button>}
        </span>
        <Legend window={shown} onSeek={seek} />
      </div>
      <div className={styles.split}>
        <GridView
          window={shown} rows={rows} longest={longest} chosenRun={chosenRun} chosenTask={chosenTask} sought={sought} onFold={fold}
          onChoose={(task, run) => set({ task, run })}
          onOpen={(task, run) =>
            void (task
              ? navigate({ to: "/dags/$dagId/runs/$runId/tasks/$taskId", params: { dagId, runId: run, taskId: task } })
              : navigate({ to: "/dags/$dagId/runs/$runId", params: { dagId, runId: run } }))
          }
        />
        {chosenRun && <Aside dagId={dagId} structure={structure} window={shown} runId={chosenRun} rowId={chosenTask} onClose={() => set({ task: "", run: "" })} />}
      </div>
    </>
  );
}

/** How many task instances of the window are in each state. Each leads to the next of them. */
function Legend({ window: shown, onSeek }: { window: Window; onSeek: (state: string) => void }) {
  const t = useText();
  const counts = useMemo(() => totals(shown), [shown]);
  return (
    <ul className={styles.legend}>
      {BY_URGENCY.map((state) => {
        const count = counts[shown.states.indexOf(state)] ?? 0;
        if (!count) return null;
        return (
          <li key={state}>
            <button type="button" className={styles.legendItem} title={t("grid.seek", { state: stateWord(state) })} onClick={() => onSeek(state)}>
              <StateIcon state={state} decorative size={14} /> {stateWord(state)} <b className="figures">{formatNumber(count)}</b>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
