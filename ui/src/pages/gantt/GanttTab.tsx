// The Gantt chart of a run: what each task waited for and how long it ran, the tasks that decided the end, and how long it usually takes.
//
// The summary of the run gives all rows at once; the spans are read for the rows in view, 500 rows a request.
import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { ChartGantt, ChevronDown, ChevronRight, Maximize2, Route, Table2, ZoomIn, ZoomOut } from "lucide-react";
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";

import { useParam } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { enc, live, runTopic } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { Segments, usePhone } from "../../parts/filters";
import { MiddleCut } from "../../parts/MiddleCut";
import { EmptyState, ErrorState, Loaded, Loading } from "../../parts/status";
import { To } from "../../parts/To";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateIcon } from "../../state/StateIcon";
import { stateColour, stateOf, stateWord, UNFINISHED } from "../../state/states";
import { durationText } from "../../time/format";
import { useNow } from "../../time/now";
import { TimeText } from "../../time/TimeText";
import { runQuery, versionQuery } from "../run/query";
import { taskRows, type TaskRow } from "../run/rows";
import styles from "./gantt.module.css";
import { domainOf, PHASES, labelled, rowsOf, shownSpans, ticksOf, totalsOf, unionOf, type Bar, type GanttRow, type Phase } from "./model";

const ROW = 28;
const CHUNK = 500;
const ZOOM_MAX = 256;
const OVERSCAN = 8;
/** Pixels that the text of a mark of the time axis needs. */
const TICK_ROOM = 56;
const NO_BARS: readonly Bar[] = [];
/** What a task does before its first attempt runs. The mark of the critical path begins after it. */
const WAITS_BEFORE: ReadonlySet<Phase> = new Set(["upstream", "limit", "queued"]);
type Gantt = Schemas["Gantt"];

function ganttQuery(dagId: string, runId: string, chunk: number) {
  return live(["gantt", dagId, runId, chunk], [runTopic(dagId, runId)], (signal) =>
    read(
      api.GET("/api/tradewind/v1/dags/{dag_id}/runs/{run_id}/gantt", {
        params: { path: { dag_id: dagId, run_id: runId }, query: { rows_from: chunk * CHUNK, rows_to: (chunk + 1) * CHUNK } }, signal,
      }),
    ),
  );
}

export default function GanttTab() {
  const { dagId, runId } = useParams({ from: "/shell/dags/$dagId/runs/$runId/gantt" });
  const query = useQuery(runQuery(dagId, runId));
  useQuery(ganttQuery(dagId, runId, 0)); // the first rows: asked for together with the run
  return <Loaded query={query} lines={14}>{(page) => <Chart page={page} />}</Loaded>;
}

function Chart({ page }: { page: Schemas["PageRun"] }) {
  const t = useText();
  const phone = usePhone();
  const { run } = page;
  const dagId = run.dag_id, runId = run.dag_run_id;
  const structure = useQuery(versionQuery(dagId, page.version));
  const tasks = useMemo(() => (structure.data ? taskRows(structure.data, page) : []), [structure.data, page]);
  const [show] = useParam("show");
  const [opened, setOpened] = useParam("open");
  const [zoomText, setZoomText] = useParam("zoom", "1");
  const zoom = Math.min(ZOOM_MAX, Math.max(1, Number(zoomText) || 1));
  const [view, setView] = useParam("view");
  const asTable = view === "table";
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [place, setPlace] = useState({ top: 0, height: 700, width: 1000 });
  const [tablePages, setTablePages] = useState(1);
  const now = useNow();
  const elapsed = Math.max(1, (run.end_date === null ? now : Date.parse(run.end_date)) - Date.parse(run.start_date ?? run.queued_at ?? run.run_after));

  // --- data ----------------------------------------------------------------------------------------------------------
  // All chunks in the cache are drawn, so scrolling back shows them at once; those in view are kept fresh.
  const cache = useQueryClient();
  const chunks = cache.getQueryCache().findAll({ queryKey: ["gantt", dagId, runId] });
  const stamp = chunks.map((one) => `${one.queryHash}${one.state.dataUpdatedAt}`).join();
  const { bars, usual, critical, phases, usualRuns } = useMemo(
    () => gather(cache.getQueriesData<Gantt>({ queryKey: ["gantt", dagId, runId] }).map(([, one]) => one)),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `stamp` says when the content of the cache is another
    [cache, dagId, runId, stamp],
  );

  // --- rows ----------------------------------------------------------------------------------------------------------
  const open = useMemo(() => new Set(opened.split(",").filter(Boolean).map(decodeURIComponent)), [opened]);
  const rows = useMemo(() => rowsOf(tasks, show === "critical" ? critical : null, open, (row) => bars.get(row) ?? NO_BARS), [tasks, show, critical, open, bars]);
  const first = Math.max(0, Math.floor(place.top / ROW) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((place.top + place.height) / ROW) + OVERSCAN);
  const inView = new Set(rows.slice(first, last).map((one) => Math.floor(one.task.at / CHUNK)));
  const needed = asTable ? Array.from({ length: tablePages }, (_, at) => at) : inView.size ? [...inView] : [0];
  const results = useQueries({ queries: needed.map((chunk) => ganttQuery(dagId, runId, chunk)) });
  const failed = results.find((one) => one.error !== null);
  const toggle = useCallback(
    (id: string) => {
      const next = new Set(open);
      if (!next.delete(id)) next.add(id);
      setOpened([...next].map(encodeURIComponent).join(","));
    },
    [open, setOpened],
  );

  // --- places and zoom -----------------------------------------------------------------------------------------------
  const names = phone ? 132 : Math.min(340, Math.max(200, Math.round(place.width * 0.26)));
  const domain = domainOf(elapsed, usual.values());
  const track = Math.max(120, Math.floor((place.width - names - 24) * zoom));
  const ticks = ticksOf(domain, track);
  const marks = labelled(ticks, domain, track, TICK_ROOM);
  const middle = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (!box) return undefined;
    const measure = (): void => setPlace({ top: box.scrollTop, height: box.clientHeight, width: box.clientWidth });
    measure(); // before the first paint: the columns must not move then
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, [box]);
  const zoomTo = useCallback(
    (next: number) => {
      const bounded = Math.min(ZOOM_MAX, Math.max(1, next));
      if (box) middle.current = (box.scrollLeft + (box.clientWidth - names) / 2) / track;
      setZoomText(String(bounded));
    },
    [box, names, track, setZoomText],
  );
  useLayoutEffect(() => {
    if (box && middle.current !== null) box.scrollTo({ left: middle.current * track - (box.clientWidth - names) / 2 });
    middle.current = null;
  }, [box, track, names]);
  const keys = useMemo<PageKey[]>(
    () => [
      { key: "+", what: "gantt.zoomIn", run: () => zoomTo(zoom * 2) },
      { key: "-", what: "gantt.zoomOut", run: () => zoomTo(zoom / 2) },
      { key: "0", what: "gantt.fit", run: () => zoomTo(1) },
    ],
    [zoomTo, zoom],
  );
  usePageKeys(keys);

  if (structure.data && tasks.length === 0) return <EmptyState title={t("run.noTasks")}><p>{t("gantt.emptyTeach")}</p></EmptyState>;
  return (
    <div className={styles.tab}>
      <div className={styles.toolbar}>
        <Segments
          name="show" label={t("gantt.rows")}
          choices={[
            { value: "", label: t("common.all"), count: tasks.length },
            { value: "critical", label: <><Route size={14} aria-hidden /> {t("gantt.critical")}</>, count: critical.size },
          ]}
        />
        <Legend phases={phases} ghosts={usual.size > 0} runs={usualRuns} />
        <span className={styles.tools}>
          {!asTable && (
            <>
              <Button compact icon label={t("gantt.zoomOut")} refused={zoom > 1 ? undefined : t("gantt.isFit")} onPress={() => zoomTo(zoom / 2)}><ZoomOut size={14} /></Button>
              <Button compact icon label={t("gantt.zoomIn")} refused={zoom < ZOOM_MAX ? undefined : t("gantt.isClosest")} onPress={() => zoomTo(zoom * 2)}><ZoomIn size={14} /></Button>
              <Button compact icon label={t("gantt.fit")} refused={zoom > 1 ? undefined : t("gantt.isFit")} onPress={() => zoomTo(1)}><Maximize2 size={14} /></Button>
            </>
          )}
          <Button compact onPress={() => setView(asTable ? "" : "table")} {...(phone ? { icon: true, label: t(asTable ? "gantt.asChart" : "gantt.asTable") } : {})}>
            {asTable ? <ChartGantt size={14} aria-hidden /> : <Table2 size={14} aria-hidden />} {!phone && t(asTable ? "gantt.asChart" : "gantt.asTable")}
          </Button>
        </span>
      </div>
      {failed && <ErrorState error={failed.error} retry={() => void failed.refetch()} />}
      {structure.data === undefined ? (
        <Loading lines={14} />
      ) : asTable ? (
        <PhaseTable rows={rows} bars={bars} usual={usual} dagId={dagId} runId={runId} onEnd={() => {
          if (tablePages * CHUNK < structure.data.ids.length && results.every((one) => one.data)) setTablePages(tablePages + 1);
        }} />
      ) : (
        <div
          ref={setBox} className={styles.box} tabIndex={0} role="group" aria-label={t("gantt.chart", { count: rows.length })}
          onScroll={(event) => {
            const { scrollTop, clientHeight, clientWidth } = event.currentTarget;
            setPlace((old) => (old.top === scrollTop && old.height === clientHeight ? old : { top: scrollTop, height: clientHeight, width: clientWidth }));
          }}
          onWheel={(event) => {
            if (!event.ctrlKey) return;
            zoomTo(event.deltaY < 0 ? zoom * 2 : zoom / 2);
          }}
        >
          <div className={styles.inner} style={{ width: names + track + 24, height: rows.length * ROW + 32 }}>
            <div className={styles.axis}>
              <div className={styles.corner} style={{ width: names }}><span className="cut"><TimeText at={run.start_date ?? run.queued_at} zoned /></span></div>
              <div className={styles.ticks} style={{ width: track }}>
                {marks.map((at) => <span key={at} data-last={(1 - at / domain) * track < TICK_ROOM || undefined} style={{ left: `${(at / domain) * 100}%` }}>{at === 0 ? "0" : durationText(at / 1000)}</span>)}
              </div>
            </div>
            <div className={styles.lines} style={{ left: names, width: track }} aria-hidden>
              {ticks.map((at) => <i key={at} style={{ left: `${(at / domain) * 100}%` }} />)}
              {run.end_date === null && <i className={styles.now} style={{ left: `${(elapsed / domain) * 100}%` }} />}
            </div>
            {rows.slice(first, last).map((row, at) => {
              const own = bars.get(row.task.at) ?? NO_BARS;
              const shown = row.mapIndex === undefined ? own : own.filter((one) => one.map_index === row.mapIndex);
              return (
                <Row
                  key={`${row.task.at}/${row.mapIndex ?? ""}/${row.omitted ?? ""}`} row={row} bars={shown} top={(first + at) * ROW + 32} names={names} track={track} domain={domain}
                  states={page.states} usual={row.mapIndex === undefined && row.omitted === undefined ? usual.get(row.task.at) : undefined} isCritical={critical.has(row.task.at)}
                  isOpen={open.has(row.task.id)} elapsed={grows(row, shown, page.states) ? elapsed : 0} toggle={toggle} dagId={dagId} runId={runId}
                />
              );
            })}
          </div>
        </div>
      )}
    </div>
  );
}

/** All chunks as one. */
function gather(chunks: readonly (Gantt | undefined)[]) {
  const found = { bars: new Map<number, Bar[]>(), usual: new Map<number, readonly [number, number]>(), critical: new Set<number>(), phases: new Set<Phase>(), usualRuns: 0 };
  for (const one of chunks) {
    if (!one) continue;
    for (const bar of one.bars) {
      const list = found.bars.get(bar.row);
      if (list) list.push(bar);
      else found.bars.set(bar.row, [bar]);
      for (let at = 0; at < bar.spans.length; at += 3) found.phases.add(PHASES[bar.spans[at] ?? 0] ?? "running");
    }
    for (const [row, [start = 0, length = 0]] of Object.entries(one.usual as Record<string, number[]>)) found.usual.set(Number(row), [start, length]);
    for (const row of one.critical) found.critical.add(row);
    found.usualRuns = Math.max(found.usualRuns, one.usual_runs);
  }
  return found;
}

/** Whether the last span has not ended. */
function grows(row: GanttRow, bars: readonly Bar[], states: readonly string[]): boolean {
  return bars.length ? bars.some((one) => UNFINISHED.has(states[one.state] ?? "success")) : row.task.duration < 0 && UNFINISHED.has(row.task.state);
}

interface RowProps {
  row: GanttRow;
  bars: readonly Bar[];
  top: number;
  names: number;
  track: number;
  domain: number;
  states: readonly string[];
  usual: readonly [number, number] | undefined;
  isCritical: boolean;
  isOpen: boolean;
  /** The present moment, if the row has not ended; 0: it has ended. */
  elapsed: number;
  toggle: (id: string) => void;
  dagId: string;
  runId: string;
}

const Row = memo(function Row({ row, bars, top, names, track, domain, states, usual, isCritical, isOpen, elapsed, toggle, dagId, runId }: RowProps) {
  const t = useText();
  const navigate = useNavigate();
  const { task, mapIndex, omitted } = row;
  if (omitted !== undefined) {
    return <div className={styles.row} style={{ top }}><div className={styles.name} style={{ width: names }} /><p className="muted small">{t("gantt.omitted", { count: omitted })}</p></div>;
  }
  const state = mapIndex === undefined ? task.state : (states[bars[0]?.state ?? -1] ?? "none");
  const href = `/dags/${enc(dagId)}/runs/${enc(runId)}/tasks/${enc(task.id)}${mapIndex === undefined ? "" : `?map=${mapIndex}`}`;
  const spans = shownSpans(task, unionOf(bars));
  const latest = spans.reduce((most, one) => Math.max(most, one.end), 0);
  const began = spans.reduce((least, one) => (WAITS_BEFORE.has(one.phase) ? least : Math.min(least, one.start)), Infinity);
  const share = (value: number): string => `${Math.min(100, (value / domain) * 100)}%`;
  const words = describe(bars, usual, t);
  return (
    <div className={styles.row} style={{ top }} data-instance={mapIndex === undefined ? undefined : ""}>
      <div className={styles.name} style={{ width: names }}>
        {mapIndex !== undefined || task.instances < 2 ? (
          <span className={styles.chevron} />
        ) : (
          <button type="button" className={styles.chevron} aria-expanded={isOpen} aria-label={t("gantt.instances", { name: task.id, count: task.instances })} onClick={() => toggle(task.id)}>
            {isOpen ? <ChevronDown size={14} /> : <ChevronRight size={14} />}
          </button>
        )}
        <StateIcon state={state} size={14} />
        <To href={href} className={`${styles.link} cut`} title={task.id}>
          {mapIndex !== undefined ? `[${mapIndex}]` : names >= 280 ? <><span className="muted">{task.group}</span>{task.name}</> : <MiddleCut text={task.name} />}
        </To>
        {task.instances > 1 && mapIndex === undefined && <span className="muted small figures">×{formatNumber(task.instances)}</span>}
        {isCritical && <Route size={12} className={styles.criticalIcon} aria-label={t("gantt.onCritical")} />}
      </div>
      <div className={styles.track} style={{ width: track }} title={words} onClick={() => void navigate({ href })}>
        {isCritical && began < Infinity && <i className={styles.criticalFrame} style={{ left: share(began), width: share(Math.max(latest, elapsed) - began) }} />}
        {usual && <i className={styles.ghost} style={{ left: share(usual[0]), width: `max(3px, ${share(usual[1])})` }} />}
        {spans.map((one, at) => {
          const end = elapsed && one.end === latest ? Math.max(one.end, elapsed) : one.end;
          return (
            <i
              key={at} className={styles[one.phase]}
              style={{ left: share(one.start), width: share(end - one.start), ...(one.phase === "running" ? { background: stateColour(runningState(state, end < latest)) } : {}) }}
            />
          );
        })}
      </div>
    </div>
  );
});

/** The colour of a span of running: that of the end, and of a try that was not the last one: failed. */
function runningState(state: string, wasEarlier: boolean) {
  const known = stateOf(state);
  if (wasEarlier && known === "success") return "success";
  return known === "queued" || known === "scheduled" || known === "none" || known === "up_for_retry" ? "failed" : known;
}

function describe(bars: readonly Bar[], usual: readonly [number, number] | undefined, t: ReturnType<typeof useText>): string {
  const totals = totalsOf(bars);
  const parts = PHASES.filter((one) => totals.has(one)).map((one) => `${t(`gantt.phase_${one}`)} ${durationText((totals.get(one) ?? 0) / 1000)}`);
  if (usual) parts.push(t("gantt.usualTime", { duration: durationText(usual[1] / 1000) }));
  return parts.join(" · ");
}

function Legend({ phases, ghosts, runs }: { phases: ReadonlySet<Phase>; ghosts: boolean; runs: number }) {
  const t = useText();
  return (
    <ul className={styles.legend} aria-label={t("gantt.legend")}>
      {PHASES.filter((one) => phases.has(one)).map((one) => (
        <li key={one}>
          <span className={styles.swatch}><i className={styles[one]} data-legend /></span> {t(`gantt.phase_${one}`)}
        </li>
      ))}
      {ghosts && (
        <li title={t("gantt.ghostsOf", { count: runs })}>
          <span className={styles.swatch}><i className={styles.ghost} /></span> {t("gantt.ghost")}
        </li>
      )}
    </ul>
  );
}

/** The chart as a table, for screen readers and for copying. */
function PhaseTable({ rows, bars, usual, dagId, runId, onEnd }: {
  rows: readonly GanttRow[]; bars: ReadonlyMap<number, readonly Bar[]>; usual: ReadonlyMap<number, readonly [number, number]>; dagId: string; runId: string; onEnd: () => void;
}) {
  const t = useText();
  const shown = rows.filter((one) => one.mapIndex === undefined && one.omitted === undefined).map((one) => one.task);
  const present = PHASES.filter((one) => one === "upstream" || one === "queued" || one === "running" || [...bars.values()].some((list) => totalsOf(list).has(one)));
  const columns: Column<TaskRow>[] = [
    { id: "task", title: t("common.task"), width: "minmax(200px, 2fr)", render: (one) => <span className={styles.cell}><StateIcon state={one.state} /> <span className="cut" title={one.id}>{one.id}</span></span> },
    { id: "state", title: t("common.state"), width: "120px", render: (one) => stateWord(one.state) },
    ...present.map((phase): Column<TaskRow> => ({
      id: phase, title: t(`gantt.phase_${phase}`), width: "minmax(112px, 1fr)", right: true,
      render: (one) => {
        const length = totalsOf(bars.get(one.at) ?? NO_BARS).get(phase);
        return length === undefined ? "" : <span className="figures">{durationText(length / 1000)}</span>;
      },
    })),
    { id: "usual", title: t("gantt.ghost"), width: "88px", right: true, render: (one) => <span className="figures muted">{usual.has(one.at) ? durationText((usual.get(one.at)?.[1] ?? 0) / 1000) : ""}</span> },
  ];
  return (
    <div className={styles.table}>
      <VirtualTable label={t("run.gantt")} rows={shown} columns={columns} rowKey={(one) => one.id} rowHeight={32} onEnd={onEnd} href={(one) => `/dags/${enc(dagId)}/runs/${enc(runId)}/tasks/${enc(one.id)}`} />
    </div>
  );
}
