// A table of runs with filters in the address, selection, and actions on the selected runs.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Activity, MessageSquareText, SearchX, X } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import { useAddress, useParam, useSetAddress } from "../../address";
import { useRefusal } from "../../api/me";
import { enc } from "../../api/query";
import { t, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine } from "../../parts/CopyAs";
import { Checkbox } from "../../parts/fields";
import { FilterRow, FilterSelect, RemovableChip, SearchParam, useNarrow, usePhone } from "../../parts/filters";
import parts from "../../parts/parts.module.css";
import { EmptyState, Loaded } from "../../parts/status";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateIcon } from "../../state/StateIcon";
import { runTypeWord, stateColour, stateOf, stateWord } from "../../state/states";
import { DurationText, TimeText } from "../../time/TimeText";
import { useZone } from "../../time/zone";
import { BulkDialog, type BulkAction } from "./BulkDialog";
import { fullBar } from "./bars";
import { filtersOf, isFiltered, NEWEST_FIRST, runsQuery, type Run } from "./query";
import styles from "./runs.module.css";

const STATES = ["failed", "running", "queued", "success"] as const;
const TYPES = ["scheduled", "manual", "backfill", "asset_triggered", "asset_materialization", "operator_triggered"] as const;

/** Pixels of the longest bar. */
const BAR = 90;

function keyOf(run: Run): string {
  return `${run.dag_id}\n${run.dag_run_id}`;
}

export function RunFilters({ ofAllDags = false }: { ofAllDags?: boolean }) {
  const t = useText();
  const { day = "" } = useAddress();
  const [from, setFrom] = useParam("from");
  const [to, setTo] = useParam("to");
  const setAddress = useSetAddress();
  const states = STATES.map((value) => ({ value, label: stateWord(value), icon: <StateIcon state={value} decorative /> }));
  return (
    <>
      {ofAllDags ? <SearchParam name="dag" label={t("runs.searchDag")} width={220} /> : <SearchParam name="run" label={t("runs.searchRun")} width={220} />}
      <FilterRow>
        <FilterSelect name="state" label={t("runs.state")} choices={[{ value: "running,queued", label: t("runs.unfinished") }, ...states]} />
        <FilterSelect name="type" label={t("runs.type")} choices={TYPES.map((value) => ({ value, label: runTypeWord(value) }))} />
        {day ? (
          <RemovableChip label={t("runs.removeDay")} onRemove={() => setAddress({ day: "" })}>{t("runs.dayFilter", { day })}</RemovableChip>
        ) : (
          <>
            <DayField label={t("runs.from")} value={from} onChange={setFrom} />
            <DayField label={t("runs.to")} value={to} onChange={setTo} />
          </>
        )}
      </FilterRow>
    </>
  );
}

function DayField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label className={styles.day}>
      <span className="muted">{label}</span>
      <input type="date" className={parts.input} value={value} max="9999-12-31" onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}

export function RunTable({ dagId }: { dagId: string }) {
  const t = useText();
  const zone = useZone();
  const address = useAddress();
  const filters = filtersOf(address, zone);
  const [, setOrder] = useParam("order", NEWEST_FIRST);
  const query = useInfiniteQuery(runsQuery(dagId, filters));
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.dag_runs) ?? [], [query.data]);
  const [chosen, setChosen] = useState<ReadonlyMap<string, Run>>(new Map());
  const [action, setAction] = useState<BulkAction | null>(null);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  const toggle = useCallback((run: Run) => {
    setChosen((old) => {
      const found = new Map(old);
      if (!found.delete(keyOf(run))) found.set(keyOf(run), run);
      return found;
    });
  }, []);
  const toggleAll = useCallback(() => {
    setChosen((old) => (old.size ? new Map() : new Map(rows.map((run) => [keyOf(run), run]))));
  }, [rows]);
  const keys = useMemo<PageKey[]>(() => [{ key: "x", what: "runs.keySelect" }, { key: "c", what: "runs.keyClear", run: () => chosen.size && setAction("clear") }], [chosen.size]);
  usePageKeys(keys);
  const columns = useColumns(dagId === "~", rows, chosen, toggle, toggleAll);

  return (
    <div className={styles.list}>
      {chosen.size > 0 && <SelectionBar count={chosen.size} onAction={setAction} onClear={() => setChosen(new Map())} />}
      <Loaded query={query} lines={14}>
        {() =>
          rows.length === 0 ? (
            <None filtered={isFiltered(filters)} dagId={dagId} />
          ) : (
            <VirtualTable
              label={t("runs.table")} rows={rows} columns={columns} rowKey={keyOf} onEnd={onEnd} order={filters.order} onOrder={setOrder}
              href={(run) => `/dags/${enc(run.dag_id)}/runs/${enc(run.dag_run_id)}`}
              onKey={(key, run) => key === "x" && toggle(run)}
            />
          )
        }
      </Loaded>
      {action && (
        <BulkDialog
          action={action} dagId={dagId} runs={[...chosen.values()]}
          onClose={(done) => {
            setAction(null);
            if (done) setChosen(new Map());
          }}
        />
      )}
    </div>
  );
}

function SelectionBar({ count, onAction, onClear }: { count: number; onAction: (action: BulkAction) => void; onClear: () => void }) {
  const t = useText();
  const refusal = useRefusal("edit:run");
  return (
    <div className={styles.selection} role="toolbar" aria-label={t("runs.selected", { count })}>
      <Button look="quiet" icon compact label={t("runs.unselect")} onPress={onClear}><X size={14} /></Button>
      <b>{t("runs.selected", { count })}</b>
      <Button compact refused={refusal} onPress={() => onAction("clear")}>{t("runs.clear")}</Button>
      <Button compact refused={refusal} onPress={() => onAction("success")}>{t("runs.markSuccess")}</Button>
      <Button compact refused={refusal} onPress={() => onAction("failed")}>{t("runs.markFailed")}</Button>
      <Button compact look="danger" refused={refusal} onPress={() => onAction("delete")}>{t("runs.delete")}</Button>
    </div>
  );
}

function useColumns(withDag: boolean, rows: readonly Run[], chosen: ReadonlyMap<string, Run>, toggle: (run: Run) => void, toggleAll: () => void): readonly Column<Run>[] {
  const t = useText();
  const phone = usePhone();
  const narrow = useNarrow();
  const full = useMemo(() => fullBar(rows.flatMap((run) => run.duration ?? [])), [rows]);
  return useMemo(() => {
    const found: Column<Run>[] = [];
    if (!phone) {
      found.push({
        id: "select", width: "20px", open: true,
        title: <Checkbox label={t("runs.selectAll")} selected={chosen.size > 0 && chosen.size >= rows.length} indeterminate={chosen.size > 0 && chosen.size < rows.length} onChange={toggleAll} />,
        render: (run) => <Checkbox label={t("runs.select", { run: run.dag_run_id })} selected={chosen.has(keyOf(run))} onChange={() => toggle(run)} />,
      });
    }
    found.push({ id: "state", title: <span className="hidden">{t("runs.state")}</span>, width: "20px", open: true, render: (run) => <StateIcon state={run.state} /> });
    if (withDag) {
      found.push({
        id: "dag", title: t("runs.dag"), sort: "dag_id", width: phone ? "minmax(90px, 1fr)" : "minmax(140px, 1.4fr)",
        render: (run) => <Link className={styles.dag} to="/dags/$dagId" params={{ dagId: run.dag_id }} title={run.dag_id}>{run.dag_display_name}</Link>,
      });
    }
    found.push({
      id: "run", title: t("runs.runAfter"), sort: "run_after", width: phone ? "118px" : "132px",
      render: (run) => (
        <Link className={styles.run} to="/dags/$dagId/runs/$runId" params={{ dagId: run.dag_id, runId: run.dag_run_id }} title={run.dag_run_id}>
          <TimeText at={run.run_after} precision="minute" />
        </Link>
      ),
    });
    if (!phone) found.push({ id: "type", title: t("runs.type"), width: "112px", render: (run) => <span className="muted">{runTypeWord(run.run_type)}</span> });
    found.push({
      id: "duration", title: t("runs.duration"), sort: "duration", width: phone ? "64px" : "minmax(140px, 200px)", right: phone,
      render: (run) => (
        <span className={styles.duration}>
          <DurationText start={run.start_date} end={run.end_date} />
          {!phone && (
            <i
              style={{ width: run.duration === null ? 0 : Math.max(2, BAR * Math.min(1, run.duration / full)), background: stateColour(stateOf(run.state)) }}
              data-state={run.state} data-beyond={(run.duration ?? 0) > full || undefined}
            />
          )}
        </span>
      ),
    });
    if (!phone && !narrow) {
      found.push({ id: "started", title: t("runs.started"), sort: "start_date", width: "148px", render: (run) => <span className="muted"><TimeText at={run.start_date} /></span> });
      found.push({ id: "by", title: t("runs.by"), width: "minmax(80px, 120px)", render: (run) => <span className="muted" title={run.triggering_user_name ?? ""}>{run.triggering_user_name}</span> });
    }
    if (!phone) {
      found.push({
        id: "note", title: t("runs.note"), width: withDag ? "minmax(40px, 1fr)" : "minmax(60px, 2fr)",
        render: (run) => run.note && <span className={styles.note} title={run.note}><MessageSquareText size={13} aria-hidden /> {run.note}</span>,
      });
    }
    return found;
  }, [t, withDag, phone, narrow, rows.length, chosen, toggle, toggleAll, full]);
}

function None({ filtered, dagId }: { filtered: boolean; dagId: string }) {
  useText();
  if (filtered) {
    return (
      <EmptyState icon={<SearchX size={28} aria-hidden />} title={t("runs.none")}>
        <p>{t("runs.noneText")}</p>
        <Link to="." search={{} as never}>{t("common.clearFilters")}</Link>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={<Activity size={28} aria-hidden />} title={t("runs.empty")}>
      <p>{t("runs.emptyText")}</p>
      <pre className={parts.code}>{commandLine("tradewind", "dags", "trigger", dagId === "~" ? "hello_chain" : dagId)}</pre>
    </EmptyState>
  );
}
