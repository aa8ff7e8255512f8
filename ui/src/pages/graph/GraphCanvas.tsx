// The drawing of a graph: boxes as HTML, edges as SVG below them, in one layer that is moved and scaled. Only what is in view is drawn.
//
// The boxes are one stop of the Tab key: the arrows move from box to box, Enter selects, Space folds a group.
import { ChevronDown, ChevronRight, Layers, Maximize, Minus, Plus, ShieldCheck, Wrench } from "lucide-react";
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent, type PointerEvent } from "react";

import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { StateIcon } from "../../state/StateIcon";
import { stateColour, stateOf, stateWord } from "../../state/states";
import { usePageKeys } from "../../shell/keys";
import { centred, fitView, heldView, nearest, roundedPath, zoomAt, type Box, type Layout, type View } from "./layout";
import { Minimap } from "./Minimap";
import { groupCounts, isMapped, metaOf, nameOf, tasksIn, type GraphModel, type GraphNode, type Structure } from "./model";
import styles from "./graph.module.css";

/** Below this zoom texts cannot be read: boxes are filled with the colour of their state. */
const FAR = 0.42;
/** A graph that would open smaller than this opens at READABLE instead, at the row that needs attention. */
const SMALL = 0.5, READABLE = 0.85;
/** The part of the graph that is drawn changes in steps of this many pixels. */
const STEP = 256;
const DRAG_FROM = 4;

export interface GraphStates {
  names: readonly string[];
  /** State code by row; -1: no task instance. */
  codes: ArrayLike<number>;
  /** How many instances a row has; undefined: not mapped, or not known. */
  instances: (row: number) => number | undefined;
}

interface Props {
  structure: Structure;
  model: GraphModel;
  layout: Layout;
  states: GraphStates | null;
  selected: number;
  /** Rows and edges that are not dimmed; null: none is dimmed. */
  bright: { rows: ReadonlySet<number>; edges: ReadonlySet<string> } | null;
  /** Rows whose name a search has found. */
  found: ReadonlySet<number> | null;
  onSelect: (row: number) => void;
  onFold: (row: number) => void;
  label: string;
}

export function GraphCanvas({ structure, model, layout, states, selected, bright, found, onSelect, onFold, label }: Props) {
  const t = useText();
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [view, setView] = useState<View | null>(null);
  const [active, setActive] = useState(-1);
  const anchor = useRef<{ row: number; x: number; y: number } | null>(null);
  const placedFor = useRef<Layout | null>(null);

  useLayoutEffect(() => {
    if (!box) return;
    const watch = new ResizeObserver(() => setSize({ width: box.clientWidth, height: box.clientHeight }));
    watch.observe(box);
    return () => watch.disconnect();
  }, [box]);

  const stateAt = useCallback((row: number): string | null => {
    const code = states?.codes[row] ?? -1;
    return code < 0 ? null : (states?.names[code] ?? null);
  }, [states]);

  // After a new layout, the folded or selected box stays in its place. The first layout is fitted into the window.
  useLayoutEffect(() => {
    if (!size.width || placedFor.current === layout) return;
    const first = placedFor.current === null;
    placedFor.current = layout;
    const kept = anchor.current;
    const place = kept ? layout.boxes.get(kept.row) : undefined;
    anchor.current = null;
    setView((old) => {
      if (old && !first && kept && place) return { zoom: old.zoom, x: kept.x - place.x * old.zoom, y: kept.y - place.y * old.zoom };
      return firstView(layout, size, layout.boxes.get(selected) ?? layout.boxes.get(urgent(model, stateAt)));
    });
  }, [layout, size, model, stateAt, selected]);

  const change = useCallback((next: (old: View) => View) => setView((old) => (old ? heldView(next(old), layout, size.width, size.height) : old)), [layout, size]);
  const zoomBy = useCallback((factor: number) => change((old) => zoomAt(old, old.zoom * factor, size.width / 2, size.height / 2)), [change, size]);
  const fit = useCallback(() => setView(fitView(layout, size.width, size.height)), [layout, size]);

  usePageKeys(useMemo(() => [
    { key: "f", what: "graph.keyFit" as const, run: fit },
    { key: "+", what: "graph.keyIn" as const, run: () => zoomBy(1.25) },
    { key: "-", what: "graph.keyOut" as const, run: () => zoomBy(0.8) },
    { key: "Enter", what: "graph.keySelect" as const },
    { key: "Space", what: "graph.keyFold" as const },
  ], [fit, zoomBy]));

  // Move the selected box into view: it may have been selected elsewhere, or the panel now covers it.
  useEffect(() => {
    const place = layout.boxes.get(selected);
    if (!place) return;
    const frame = requestAnimationFrame(() => change((old) => {
      const left = place.x * old.zoom + old.x, top = place.y * old.zoom + old.y;
      const inside = left > 0 && top > 0 && left + place.width * old.zoom < size.width && top + place.height * old.zoom < size.height;
      return inside ? old : centred(old.zoom < FAR ? { ...old, zoom: READABLE } : old, place, size.width, size.height);
    }));
    return () => cancelAnimationFrame(frame);
  }, [selected, layout, size, change]);

  useEffect(() => {
    if (!box) return;
    const wheel = (event: WheelEvent): void => {
      event.preventDefault();
      const place = box.getBoundingClientRect();
      const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
      if (event.shiftKey) change((old) => ({ ...old, x: old.x - pixels }));
      else change((old) => zoomAt(old, old.zoom * Math.exp(-Math.max(-120, Math.min(120, pixels)) / (event.ctrlKey ? 120 : 400)), event.clientX - place.left, event.clientY - place.top));
    };
    box.addEventListener("wheel", wheel, { passive: false });
    return () => box.removeEventListener("wheel", wheel);
  }, [box, change]);

  const drag = useDrag(change);

  const fold = useCallback((row: number) => {
    const place = layout.boxes.get(row);
    if (place && view) anchor.current = { row, x: place.x * view.zoom + view.x, y: place.y * view.zoom + view.y };
    onFold(row);
  }, [layout, view, onFold]);

  const area = view && visibleArea(view, size);
  const shown = useMemo(() => {
    if (!area) return null;
    const [left, top, right, bottom] = area.split(" ").map(Number) as [number, number, number, number];
    const inside = (one: Box): boolean => one.x < right && one.x + one.width > left && one.y < bottom && one.y + one.height > top;
    return {
      nodes: model.nodes.filter(({ row }) => inside(layout.boxes.get(row) ?? { x: 0, y: 0, width: 0, height: 0 })),
      edges: layout.edges.filter(({ points }) => points.length > 1 && inside(around(points))),
    };
  }, [area, model, layout]);

  const tabStop = layout.boxes.has(active) ? active : layout.boxes.has(selected) ? selected : (model.nodes[0]?.row ?? -1);

  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key !== "ArrowLeft" && key !== "ArrowRight" && key !== "ArrowUp" && key !== "ArrowDown") return;
    const next = nearest(layout.boxes, tabStop, key);
    event.preventDefault();
    if (next === undefined) return;
    setActive(next);
    const place = layout.boxes.get(next);
    if (place) change((old) => revealed(old, place, size));
    requestAnimationFrame(() => box?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus({ preventScroll: true }));
  };

  return (
    <div ref={setBox} className={styles.canvas} data-far={(view?.zoom ?? 1) < FAR || undefined} {...drag} onKeyDown={onKey} role="group" aria-label={label}>
      {view && shown && (
        <div className={styles.layer} style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.zoom})`, width: layout.width, height: layout.height }}>
          {shown.nodes.filter((one) => one.kind === "open").map((one) => (
            <GroupFrame key={one.row} node={one} box={layout.boxes.get(one.row)} structure={structure} state={stateAt(one.row)} dim={bright !== null && !bright.rows.has(one.row)} chosen={one.row === selected} tabStop={one.row === tabStop} onSelect={onSelect} onFold={fold} />
          ))}
          <Edges layout={layout} edges={shown.edges} model={model} bright={bright?.edges ?? null} />
          {shown.nodes.filter((one) => one.kind !== "open").map((one) => (
            <NodeBox
              key={one.row} node={one} box={layout.boxes.get(one.row)} structure={structure} states={states} state={stateAt(one.row)} chosen={one.row === selected} tabStop={one.row === tabStop}
              dim={(bright !== null && !bright.rows.has(one.row)) || (found !== null && !found.has(one.row))} onSelect={onSelect} onFold={fold}
            />
          ))}
        </div>
      )}
      <div className={styles.tools} onPointerDown={(event) => event.stopPropagation()}>
        <Button look="plain" icon compact label={t("graph.zoomIn")} onPress={() => zoomBy(1.25)}><Plus size={14} /></Button>
        <Button look="plain" icon compact label={t("graph.zoomOut")} onPress={() => zoomBy(0.8)}><Minus size={14} /></Button>
        <Button look="plain" icon compact label={t("graph.fit")} onPress={fit}><Maximize size={14} /></Button>
        <span className={`${styles.zoom} figures muted small`}>{view ? `${Math.round(view.zoom * 100)} %` : ""}</span>
      </div>
      {view && size.width > 560 && !isWhole(view, layout, size) && (
        <div className={styles.minimapPlace} onPointerDown={(event) => event.stopPropagation()}>
          <Minimap
            layout={layout} model={model} stateAt={stateAt} view={view} width={size.width} height={size.height}
            onMove={(x, y) => change((old) => ({ ...old, x: size.width / 2 - x * old.zoom, y: size.height / 2 - y * old.zoom }))}
          />
        </div>
      )}
    </div>
  );
}

function isWhole(view: View, layout: Layout, size: { width: number; height: number }): boolean {
  return view.x >= -1 && view.y >= -1 && view.x + layout.width * view.zoom <= size.width + 1 && view.y + layout.height * view.zoom <= size.height + 1;
}

/** The first view: the whole graph if it can be read then, else a readable part with `wanted` in it. */
function firstView(layout: Layout, size: { width: number; height: number }, wanted: Box | undefined): View {
  const whole = fitView(layout, size.width, size.height);
  if (whole.zoom >= SMALL) return whole;
  if (wanted) return heldView(centred({ x: 0, y: 0, zoom: READABLE }, wanted, size.width, size.height), layout, size.width, size.height);
  const fits = layout.height * READABLE <= size.height;
  return { zoom: READABLE, x: 0, y: fits ? (size.height - layout.height * READABLE) / 2 : 0 };
}

/** The row that needs attention first: failed, then running. */
function urgent(model: GraphModel, stateAt: (row: number) => string | null): number {
  for (const wanted of ["failed", "running"]) {
    const found = model.nodes.find((one) => one.kind !== "open" && stateAt(one.row) === wanted);
    if (found) return found.row;
  }
  return -1;
}

/** The part of the graph that is drawn, in steps, so that it changes seldom: "left top right bottom". */
function visibleArea(view: View, size: { width: number; height: number }): string {
  const step = STEP / view.zoom;
  const low = (value: number): number => Math.floor(value / step - 0.25) * step, high = (value: number): number => Math.ceil(value / step + 0.25) * step;
  return [low(-view.x / view.zoom), low(-view.y / view.zoom), high((size.width - view.x) / view.zoom), high((size.height - view.y) / view.zoom)].join(" ");
}

function around(points: Layout["edges"][number]["points"]): Box {
  const xs = points.map((one) => one[0]), ys = points.map((one) => one[1]);
  const x = Math.min(...xs), y = Math.min(...ys);
  return { x: x - 1, y: y - 1, width: Math.max(...xs) - x + 2, height: Math.max(...ys) - y + 2 };
}

/** The view moved as little as needed to show a box. */
function revealed(view: View, box: Box, size: { width: number; height: number }): View {
  const margin = 24;
  const left = box.x * view.zoom + view.x, top = box.y * view.zoom + view.y;
  const right = left + box.width * view.zoom, bottom = top + box.height * view.zoom;
  return {
    zoom: view.zoom,
    x: view.x + (left < margin ? margin - left : right > size.width - margin ? size.width - margin - right : 0),
    y: view.y + (top < margin ? margin - top : bottom > size.height - margin ? size.height - margin - bottom : 0),
  };
}

/** Dragging with one pointer moves, with two fingers it zooms. A click on a box stays a click. */
function useDrag(change: (next: (old: View) => View) => void) {
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const moved = useRef(false);
  return {
    onPointerDown: (event: PointerEvent<HTMLDivElement>) => {
      if (event.button !== 0) return;
      pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (pointers.current.size === 1) moved.current = false;
    },
    onPointerMove: (event: PointerEvent<HTMLDivElement>) => {
      const before = pointers.current.get(event.pointerId);
      if (!before) return;
      const dx = event.clientX - before.x, dy = event.clientY - before.y;
      if (!moved.current && Math.hypot(dx, dy) < DRAG_FROM) return;
      if (!moved.current) event.currentTarget.setPointerCapture(event.pointerId);
      moved.current = true;
      const place = event.currentTarget.getBoundingClientRect();
      const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
      pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (!other) change((old) => ({ ...old, x: old.x + dx, y: old.y + dy }));
      else {
        const share = Math.hypot(event.clientX - other.x, event.clientY - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
        const x = (event.clientX + other.x) / 2 - place.left, y = (event.clientY + other.y) / 2 - place.top;
        change((old) => zoomAt({ ...old, x: old.x + dx / 2, y: old.y + dy / 2 }, old.zoom * share, x, y));
      }
    },
    onPointerUp: (event: PointerEvent<HTMLDivElement>) => void pointers.current.delete(event.pointerId),
    onPointerCancel: (event: PointerEvent<HTMLDivElement>) => void pointers.current.delete(event.pointerId),
    onClickCapture: (event: { stopPropagation: () => void; preventDefault: () => void }) => {
      if (!moved.current) return;
      moved.current = false;
      event.stopPropagation();
      event.preventDefault();
    },
  };
}

const Edges = memo(function Edges({ layout, edges, model, bright }: { layout: Layout; edges: Layout["edges"]; model: GraphModel; bright: ReadonlySet<string> | null }) {
  const t = useText();
  const known = useMemo(() => new Map(model.edges.map((one) => [one.id, one])), [model]);
  return (
    <>
      <svg className={styles.edges} width={layout.width} height={layout.height} aria-hidden>
        <defs>
          <marker id="graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.8L7.2 4L0 7.2z" className={styles.arrow} /></marker>
          <marker id="graph-arrow-bright" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.8L7.2 4L0 7.2z" className={styles.arrowBright} /></marker>
        </defs>
        {edges.map((one) => {
          const is = bright === null ? undefined : bright.has(one.id) ? "bright" : "dim";
          return (
            <path key={one.id} d={roundedPath(one.points)} className={styles.edge} data-path={is} data-cleanup={known.get(one.id)?.cleanup || undefined} markerEnd={is === "bright" ? "url(#graph-arrow-bright)" : "url(#graph-arrow)"}>
              {(known.get(one.id)?.count ?? 1) > 1 && <title>{t("graph.edges", { count: known.get(one.id)?.count ?? 1 })}</title>}
            </path>
          );
        })}
      </svg>
      {edges.map(({ id, label }) => label && (
        <span key={id} className={styles.edgeLabel} title={label.text} data-path={bright === null || bright.has(id) ? undefined : "dim"} style={{ left: label.x, top: label.y, width: label.width, height: label.height }}>
          <span className="cut">{label.text}</span>
        </span>
      ))}
    </>
  );
});

interface BoxProps {
  node: GraphNode;
  box: Box | undefined;
  structure: Structure;
  state: string | null;
  chosen: boolean;
  dim: boolean;
  tabStop: boolean;
  onSelect: (row: number) => void;
  onFold: (row: number) => void;
}

const place = (box: Box, state: string | null): CSSProperties => ({ left: box.x, top: box.y, width: box.width, height: box.height, ["--colour" as string]: state ? stateColour(stateOf(state)) : "var(--line)" });

const GroupFrame = memo(function GroupFrame({ node: { row }, box, structure, state, dim, chosen, tabStop, onSelect, onFold }: BoxProps) {
  const t = useText();
  if (!box) return null;
  const name = nameOf(structure, row);
  return (
    <div className={styles.group} style={place(box, state)} data-dim={dim || undefined} data-chosen={chosen || undefined} data-state={state ?? undefined}>
      <div className={styles.groupHead}>
        <button type="button" className={styles.fold} aria-label={t("graph.closeGroup", { name })} tabIndex={-1} onClick={() => onFold(row)}>
          <ChevronDown size={14} aria-hidden />
        </button>
        <button
          type="button" className={styles.groupName} data-row={row} tabIndex={tabStop ? 0 : -1} title={structure.ids[row]} aria-pressed={chosen} onClick={() => onSelect(row)}
          onKeyDown={(event) => {
            if (event.key !== " ") return;
            event.preventDefault();
            onFold(row);
          }}
        >
          {state && <StateIcon state={state} size={14} />}
          <span className="cut">{name}</span>
          <span className={styles.count}>{formatNumber(tasksIn(structure, row))}</span>
        </button>
      </div>
    </div>
  );
});

const NodeBox = memo(function NodeBox({ node: { row, kind }, box, structure, states, state, dim, chosen, tabStop, onSelect, onFold }: BoxProps & { states: GraphStates | null }) {
  const t = useText();
  if (!box) return null;
  const name = nameOf(structure, row);
  const closed = kind === "closed";
  const instances = isMapped(structure, row) && !closed ? states?.instances(row) : undefined;
  const meta = closed ? t("graph.tasks", { count: tasksIn(structure, row) }) : metaOf(structure, row);
  return (
    <div className={styles.node} data-kind={closed ? "closed" : isMapped(structure, row) ? "mapped" : "task"} data-state={state ?? undefined} data-dim={dim || undefined} data-chosen={chosen || undefined} style={place(box, state)}>
      <button
        type="button" className={styles.nodeButton} data-row={row} tabIndex={tabStop ? 0 : -1} title={`${structure.ids[row] ?? ""}\n${meta}`} aria-pressed={chosen}
        aria-label={[structure.ids[row], state ? stateWord(state) : "", meta].filter(Boolean).join(", ")} onClick={() => onSelect(row)}
        onDoubleClick={() => closed && onFold(row)}
        onKeyDown={(event) => {
          if (event.key !== " " || !closed) return;
          event.preventDefault();
          onFold(row);
        }}
      >
        {states && <StateIcon state={state} size={18} decorative />}
        <span className={styles.texts}>
          <span className={`${styles.name} cut`}>{name}</span>
          <span className={styles.meta}>
            {structure.setups.includes(row) && <Wrench size={11} aria-label={t("graph.setup")} />}
            {structure.teardowns.includes(row) && <ShieldCheck size={11} aria-label={t("graph.teardown")} />}
            <span className="cut">{meta}</span>
          </span>
        </span>
        {isMapped(structure, row) && <span className={styles.instances}><Layers size={12} aria-hidden />{instances !== undefined ? `×${formatNumber(instances)}` : ""}</span>}
      </button>
      {closed && (
        <>
          <button type="button" className={styles.unfold} tabIndex={-1} aria-label={t("graph.openGroup", { name })} onClick={() => onFold(row)}><ChevronRight size={14} aria-hidden /></button>
          {states && <Share structure={structure} states={states} row={row} />}
        </>
      )}
    </div>
  );
});

/** How the tasks of a closed group are shared among states, as a bar. */
function Share({ structure, states, row }: { structure: Structure; states: GraphStates; row: number }) {
  const counts = groupCounts(structure, states.codes, row).filter(([code]) => code >= 0);
  return (
    <span className={styles.share} aria-hidden>
      {counts.map(([code, number]) => <i key={code} style={{ flexGrow: number, background: stateColour(stateOf(states.names[code])) }} />)}
    </span>
  );
}
