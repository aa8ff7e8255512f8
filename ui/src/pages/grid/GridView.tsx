// The scrolling part of the grid: names at the left, bars of durations at the top, cells on a canvas. What is drawn always lies in a
// frame that sticks to the visible part, so that scrolling moves no large layer.
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";

import { formatNumber, useLanguage, useText } from "../../i18n";
import { MiddleCut } from "../../parts/MiddleCut";
import { useShownTheme } from "../../shell/theme";
import { StateIcon } from "../../state/StateIcon";
import { runTypeWord, stateColour, stateOf, stateWord, UNFINISHED } from "../../state/states";
import { durationText, momentText, secondsBetween } from "../../time/format";
import { useZone } from "../../time/zone";
import { ABSENT, type Column, type Window } from "./cells";
import { COLUMN, drawCells, resolve, ROW, Tiles } from "./draw";
import styles from "./grid.module.css";
import type { Row } from "./rows";

const NAMES = 264, NAMES_MOST = 520, NAMES_PHONE = 150, PHONE = 520, HEAD = 76, BARS = 48;
/** Free space at the right of the newest run. */
const MARGIN = 12;

interface Props {
  window: Window;
  rows: readonly Row[];
  /** Pixels that the longest name needs. */
  longest: number;
  chosenRun: string;
  /** A task or a group; empty: the whole run. */
  chosenTask: string;
  /** A cell to bring into view when it is the chosen one. */
  sought: Sought | null;
  onFold: (id: string) => void;
  onChoose: (task: string, run: string) => void;
  onOpen: (task: string, run: string) => void;
}

export interface Sought {
  task: string;
  run: string;
}

interface Place {
  row: number;
  column: number;
}

/** The cell under the pointer, and the position of its tooltip: pixels in the frame. */
interface Hovered extends Place {
  x: number;
  y: number;
}

export function GridView({ window: shown, rows, longest, chosenRun, chosenTask, sought, onFold, onChoose, onOpen }: Props) {
  const t = useText();
  const theme = useShownTheme();
  const zone = useZone();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const names = useRef<HTMLDivElement>(null);
  const bars = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [first, setFirst] = useState({ row: 0, column: 0 });
  const [hover, setHover] = useState<Hovered | null>(null);
  const atEnd = useRef(true);
  const columns = shown.columns;
  const left = namesColumn(size.width, longest, columns.length);
  const view = useMemo(() => ({ width: Math.max(0, size.width - left), height: Math.max(0, size.height - HEAD) }), [size, left]);
  const chosenColumn = useMemo(() => columns.findIndex((one) => one.run.run_id === chosenRun), [columns, chosenRun]);
  const chosenRow = useMemo(() => (chosenTask ? rows.findIndex((one) => one.id === chosenTask) : -1), [rows, chosenTask]);
  const [cursor, setCursor] = useState<Place>({ row: Math.max(0, chosenRow), column: chosenColumn < 0 ? columns.length - 1 : chosenColumn });

  const [followed, setFollowed] = useState(sought);
  if (sought !== followed && sought?.task === chosenTask && sought.run === chosenRun && chosenRow >= 0 && chosenColumn >= 0) {
    setFollowed(sought);
    setCursor({ row: chosenRow, column: chosenColumn });
  }

  // eslint-disable-next-line react-hooks/exhaustive-deps -- the theme changes the colours
  const tiles = useMemo(() => new Tiles(globalThis.devicePixelRatio || 1), [theme]);

  const draw = useCallback(() => {
    const scroller = box.current, target = canvas.current;
    const context = target?.getContext("2d");
    if (!scroller || !target || !context || !view.width) return;
    const ratio = globalThis.devicePixelRatio || 1;
    const wide = Math.round(view.width * ratio), high = Math.round(view.height * ratio);
    if (target.width !== wide || target.height !== high) {
      target.width = wide;
      target.height = high;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { scrollLeft: scrollX, scrollTop: scrollY } = scroller;
    drawCells(
      context,
      { ...view, scrollX, scrollY },
      {
        rows, columns, states: shown.states, tiles, row: hover?.row ?? -1, column: hover?.column ?? -1, chosenColumn,
        stripe: resolve("var(--sunken)"), accent: resolve("var(--accent)"), chosen: chosenRow >= 0 && chosenColumn >= 0 ? [chosenRow, chosenColumn] : null,
      },
    );
    if (names.current) names.current.style.transform = `translateY(${-(scrollY % ROW)}px)`;
    if (bars.current) {
      bars.current.style.transform = `translateX(${-scrollX}px)`;
      bars.current.style.setProperty("--edge", `${scrollX}px`);
    }
  }, [view, rows, columns, shown.states, tiles, hover, chosenColumn, chosenRow]);

  // The newest run is in view at first, and stays in view until the user scrolls away.
  useLayoutEffect(() => {
    if (atEnd.current && box.current && size.width) box.current.scrollLeft = box.current.scrollWidth;
  }, [columns.length, size.width]);

  useLayoutEffect(draw, [draw, theme]);

  // The size is read before the first paint: an observer tells it one frame later, and the cells would come another frame after that.
  useLayoutEffect(() => {
    const scroller = box.current;
    if (!scroller) return undefined;
    function measure(): void {
      const width = scroller?.clientWidth ?? 0, height = scroller?.clientHeight ?? 0;
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    }
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(scroller);
    return () => observer.disconnect();
  }, []);

  function scrolled(): void {
    const scroller = box.current;
    if (!scroller) return;
    atEnd.current = scroller.scrollLeft + scroller.clientWidth >= scroller.scrollWidth - 2;
    const row = Math.floor(scroller.scrollTop / ROW), column = Math.floor(scroller.scrollLeft / COLUMN);
    if (row !== first.row || column !== first.column) setFirst({ row, column });
    draw();
  }

  function placeOf(event: PointerEvent<HTMLDivElement> | React.MouseEvent<HTMLDivElement>): Place | null {
    const scroller = box.current;
    if (!scroller) return null;
    const rect = scroller.getBoundingClientRect();
    const x = event.clientX - rect.left, y = event.clientY - rect.top;
    const column = x < left ? -1 : Math.floor((x - left + scroller.scrollLeft) / COLUMN);
    const row = y < HEAD ? -1 : Math.floor((y - HEAD + scroller.scrollTop) / ROW);
    return row >= rows.length || column >= columns.length ? null : { row, column };
  }

  const show = useCallback(
    ({ row, column }: Place) => {
      const scroller = box.current;
      if (!scroller) return;
      const top = row * ROW, x = column * COLUMN;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (top + ROW > scroller.scrollTop + view.height) scroller.scrollTop = top + ROW - view.height;
      if (x < scroller.scrollLeft) scroller.scrollLeft = x;
      else if (x + COLUMN > scroller.scrollLeft + view.width) scroller.scrollLeft = x + COLUMN - view.width + MARGIN;
    },
    [view],
  );

  // The address may name a cell: it is in view when the grid opens. So is a cell that was sought.
  const shownCell = useRef<Sought | "first" | null>(null);
  useLayoutEffect(() => {
    const wanted = sought ?? "first";
    if (!view.width || shownCell.current === wanted || chosenRow < 0) return;
    if (sought && (sought.task !== chosenTask || sought.run !== chosenRun || chosenColumn < 0)) return;
    shownCell.current = wanted;
    show({ row: chosenRow, column: chosenColumn < 0 ? columns.length - 1 : chosenColumn });
  }, [view.width, sought, chosenTask, chosenRun, chosenRow, chosenColumn, columns.length, show]);

  const stateAt = useCallback(
    (row: number, column: number): string | null => {
      const code = columns[column]?.cells[rows[row]?.at ?? -1] ?? ABSENT;
      return code === ABSENT ? null : (shown.states[code] ?? null);
    },
    [columns, rows, shown.states],
  );

  /** The next cell in reading order, forwards or backwards, that failed itself. */
  function nextFailure(step: 1 | -1): Place | null {
    const total = rows.length * columns.length;
    let at = cursor.row * columns.length + cursor.column;
    for (let seen = 0; seen < total; seen += 1) {
      at = (at + step + total) % total;
      const row = Math.floor(at / columns.length), column = at % columns.length;
      if (!rows[row]?.isGroup && stateAt(row, column) === "failed") return { row, column };
    }
    return null;
  }

  function move(to: Place | null): void {
    if (!to) return;
    const place = { row: Math.max(0, Math.min(rows.length - 1, to.row)), column: Math.max(0, Math.min(columns.length - 1, to.column)) };
    setCursor(place);
    show(place);
    onChoose(rows[place.row]?.id ?? "", columns[place.column]?.run.run_id ?? "");
  }

  function pressed(event: KeyboardEvent<HTMLDivElement>): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.height / ROW) - 1);
    const { row, column } = cursor;
    const at = rows[row], run = columns[column]?.run;
    switch (event.key) {
      case "ArrowUp": move({ row: row - 1, column }); break;
      case "ArrowDown": move({ row: row + 1, column }); break;
      case "ArrowLeft": move({ row, column: column - 1 }); break;
      case "ArrowRight": move({ row, column: column + 1 }); break;
      case "PageUp": move({ row: row - page, column }); break;
      case "PageDown": move({ row: row + page, column }); break;
      case "Home": move({ row: 0, column }); break;
      case "End": move({ row: rows.length - 1, column }); break;
      case "[": move(nextFailure(-1)); break;
      case "]": move(nextFailure(1)); break;
      case " ": if (at?.isGroup) onFold(at.id); break;
      case "Enter": if (at && run) { if (at.isGroup) onFold(at.id); else onOpen(at.id, run.run_id); } break;
      case "Escape": onChoose("", ""); break;
      default: return;
    }
    event.preventDefault();
  }

  const active = rows[cursor.row], activeRun = columns[cursor.column]?.run;
  const hovered = hover && hover.row >= 0 && hover.column >= 0 ? { row: rows[hover.row], run: columns[hover.column]?.run, state: stateAt(hover.row, hover.column) } : null;
  return (
    <>
    <div
      ref={box} className={styles.scroller} onScroll={scrolled} tabIndex={0} role="grid" aria-label={t("grid.label")} aria-rowcount={rows.length} aria-colcount={columns.length}
      aria-activedescendant="grid-active" onKeyDown={pressed}
      onPointerMove={(event) => {
        const place = placeOf(event);
        if (place?.row === hover?.row && place?.column === hover?.column) return;
        const { scrollLeft, scrollTop } = event.currentTarget;
        setHover(place && { ...place, x: left + (place.column + 1) * COLUMN + 4 - scrollLeft, y: HEAD + (place.row + 1) * ROW + 2 - scrollTop });
      }}
      onPointerLeave={() => setHover(null)}
      onClick={(event) => {
        const place = placeOf(event);
        if (!place || (event.target as HTMLElement).closest("button, a")) return;
        if (place.row < 0 && place.column >= 0) onChoose("", columns[place.column]?.run.run_id ?? "");
        else if (place.row >= 0 && place.column >= 0) move(place);
        else if (place.row >= 0) move({ row: place.row, column: chosenColumn < 0 ? columns.length - 1 : chosenColumn });
      }}
      onDoubleClick={(event) => {
        const place = placeOf(event);
        const row = rows[place?.row ?? -1], run = columns[place?.column ?? -1]?.run;
        if (run && row && !row.isGroup) onOpen(row.id, run.run_id);
        else if (run && !row) onOpen("", run.run_id);
      }}
    >
      <div aria-hidden style={{ width: left + Math.max(view.width, columns.length * COLUMN + MARGIN), height: HEAD + rows.length * ROW + 12 }}>
        <div className={styles.frame} style={{ width: size.width, height: size.height }}>
          <div className={styles.head} style={{ height: HEAD }}>
            <div className={styles.scale} style={{ width: left }}>
              <Scale columns={columns} />
            </div>
            <div className={styles.barsView}>
              <div ref={bars} className={styles.bars}>
                <Bars columns={columns} first={first.column} count={Math.ceil(view.width / COLUMN) + 2} chosen={chosenColumn} hovered={hover?.column ?? -1} zone={zone} />
              </div>
            </div>
          </div>
          <div className={styles.lower} style={{ height: view.height }}>
            <div className={styles.namesView} style={{ width: left }}>
              <div ref={names}>
                <Names rows={rows} first={first.row} count={Math.ceil(view.height / ROW) + 1} chosen={chosenRow} hovered={hover?.row ?? -1} narrow={size.width < PHONE} onFold={onFold} />
              </div>
            </div>
            <canvas ref={canvas} className={styles.canvas} style={{ width: view.width, height: view.height }} />
          </div>
          {hovered?.row && hovered.run && hover && (
            <div
              className={styles.tip} aria-hidden
              style={{
                left: Math.min(size.width - 240, hover.x),
                top: Math.min(size.height - 84, hover.y),
              }}
            >
              <b className="cut">{hovered.row.label}</b>
              {hovered.state === null ? <span className="muted">{t("grid.absent")}</span> : <span className="row" style={{ gap: 6 }}><StateIcon state={hovered.state} decorative size={14} /> {stateWord(hovered.state)}</span>}
              <span className="muted figures">{momentText(hovered.run.run_after, zone, "minute")}</span>
            </div>
          )}
        </div>
      </div>
      {active && activeRun && (
        <div role="row" aria-rowindex={cursor.row + 1} className="hidden">
          <span role="rowheader">{active.label}</span>
          <span role="gridcell" id="grid-active" aria-colindex={cursor.column + 1} aria-selected={chosenRow === cursor.row}>
            {`${active.label}, ${momentText(activeRun.run_after, zone, "minute")}, ${stateWord(stateAt(cursor.row, cursor.column))}`}
          </span>
        </div>
      )}
    </div>
    <p className="hidden" role="status">{rows.length === 0 && t("grid.noMatch")}</p>
    </>
  );
}

/**
 * Pixels for the names. They get what the columns leave free, so that the cells of few runs stand beside the names; and what is left of a
 * column, so that the oldest run in view is not cut.
 */
function namesColumn(width: number, longest: number, runs: number): number {
  if (!width) return NAMES;
  const needed = runs * COLUMN + MARGIN;
  const least = width < PHONE ? NAMES_PHONE : Math.max(NAMES, Math.min(NAMES_MOST, longest, width - needed));
  return needed <= width - least ? least : least + ((width - least - MARGIN) % COLUMN);
}

function lengthOf(column: Column, now: number): number {
  const { run } = column;
  return run.start_date ? secondsBetween(run.start_date, run.end_date, now) : 0;
}

/** The longest duration and its half, beside the bars. */
function Scale({ columns }: { columns: readonly Column[] }) {
  useLanguage();
  const longest = useMemo(() => Math.max(0, ...columns.map((one) => (one.run.end_date ? lengthOf(one, 0) : 0))), [columns]);
  return longest ? <><span>{durationText(longest)}</span><span>{durationText(longest / 2)}</span></> : null;
}

interface BarsProps {
  columns: readonly Column[];
  first: number;
  count: number;
  chosen: number;
  hovered: number;
  zone: string;
}

const Bars = memo(function Bars({ columns, first, count, chosen, hovered, zone }: BarsProps) {
  // Bars of unfinished runs grow with each refresh of the cells, which comes with every change.
  const [now] = useState(() => Date.now());
  useLanguage();
  const longest = useMemo(() => Math.max(1, ...columns.map((one) => (one.run.end_date ? lengthOf(one, 0) : 0))), [columns]);
  const from = Math.max(0, first);
  return (
    <>
      {columns.slice(from, from + count).map((column, place) => {
        const at = from + place;
        const { run } = column;
        const state = stateOf(run.state);
        const height = Math.max(3, Math.min(BARS, (lengthOf(column, now) / longest) * BARS));
        const moment = run.run_after;
        const label = dateLabel(columns, at, zone);
        const text = `${stateWord(run.state)} · ${momentText(moment, zone, "minute")} · ${runTypeWord(run.run_type)}${run.start_date ? ` · ${durationText(lengthOf(column, now))}` : ""}`;
        return (
          <div key={run.id} className={styles.bar} style={{ left: at * COLUMN }} data-chosen={at === chosen || undefined} data-hovered={at === hovered || undefined} title={text}>
            <i data-state={state} style={{ height, background: stateColour(state) }}>
              {(state === "failed" || UNFINISHED.has(state)) && height >= 18 && <StateIcon state={run.state} decorative size={14} />}
            </i>
            {label && <span className={styles.date} style={{ left: `max(${-DATE_BEYOND}px, var(--edge, 0px) - ${at * COLUMN - 2}px)` }}>{label}</span>}
          </div>
        );
      })}
    </>
  );
});

const DATE_EVERY = 5, DATE_BEYOND = 6;

/** The date below a bar: of the newest run, and of each fifth before it. A run of the same day as the label before it shows its time. */
function dateLabel(columns: readonly Column[], at: number, zone: string): string {
  if ((columns.length - 1 - at) % DATE_EVERY !== 0) return "";
  const text = (place: number): string => {
    const run = columns[place]?.run;
    return run ? momentText(run.run_after, zone, "minute") : "";
  };
  const own = text(at);
  return text(at - DATE_EVERY).slice(0, 10) === own.slice(0, 10) ? own.slice(11) : own.slice(5, 10);
}

interface NamesProps {
  rows: readonly Row[];
  first: number;
  count: number;
  chosen: number;
  hovered: number;
  /** There is little room: groups and their tasks begin nearly at the same place. */
  narrow: boolean;
  onFold: (id: string) => void;
}

const Names = memo(function Names({ rows, first, count, chosen, hovered, narrow, onFold }: NamesProps) {
  const t = useText();
  return (
    <>
      {rows.slice(first, first + count).map((row, place) => (
        <div
          key={row.id} className={styles.name} data-chosen={first + place === chosen || undefined} data-hovered={first + place === hovered || undefined} data-group={row.isGroup || undefined}
          style={{ paddingLeft: narrow ? 8 + Math.min(row.depth, 3) * 6 : 12 + Math.min(row.depth, 6) * 12 + (row.isGroup ? 0 : 20) }} title={row.id}
        >
          {row.isGroup && (
            <button type="button" className={styles.fold} tabIndex={-1} aria-label={t(row.folded ? "grid.unfold" : "grid.fold", { name: row.label })} onClick={() => onFold(row.id)}>
              {row.folded ? <ChevronRight size={14} /> : <ChevronDown size={14} />}
            </button>
          )}
          <MiddleCut text={row.label} />
          {row.isGroup && <span className={styles.size}>{formatNumber(row.size)}</span>}
          {row.isMapped && !row.isGroup && <span className={styles.size} title={t("grid.mapped")}>[ ]</span>}
        </div>
      ))}
      {rows.length === 0 && <p className={styles.name}>{t("grid.noMatch")}</p>}
    </>
  );
});
