// The graph of a DAG or of one run: toolbar, drawing or list, and the panel of what is selected. All of it is in the address.
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowRight, FoldVertical, List, UnfoldVertical, Waypoints } from "lucide-react";
import { useCallback, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";

import { useAddress, useSetAddress } from "../../address";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { SearchField } from "../../parts/fields";
import { EmptyState, ErrorState, Loading, Notice } from "../../parts/status";
import { usePageKeys } from "../../shell/keys";
import { computeLayout, LayoutTooSlow } from "./engine";
import { GraphCanvas, type GraphStates } from "./GraphCanvas";
import { GraphList } from "./GraphList";
import { GraphPanel } from "./GraphPanel";
import type { Direction } from "./layout";
import { closedGroups, DRAWN_MAX, edgesOnPath, graphModel, isGroup, neighbours, nodesOnPath, pathOf, representatives, type GraphModel, type Structure } from "./model";
import styles from "./graph.module.css";

/** For a graph that is too large to draw: number of tasks that are shown on each side of the selection. */
const NEAR = 150;

const narrowQuery = matchMedia("(max-width: 899px)");
function useNarrow(): boolean {
  return useSyncExternalStore((changed) => {
    narrowQuery.addEventListener("change", changed);
    return () => narrowQuery.removeEventListener("change", changed);
  }, () => narrowQuery.matches);
}

function layoutQuery(dagId: string, version: number, key: string, model: GraphModel, direction: Direction) {
  return queryOptions({
    queryKey: ["graph-layout", dagId, version, key, direction],
    queryFn: async ({ signal }) => ({ of: `${dagId}/${version}`, model, layout: await computeLayout(model, direction, signal) }),
    staleTime: Infinity, gcTime: 1_800_000, retry: false,
    enabled: model.nodes.length > 0 && model.nodes.length <= DRAWN_MAX,
  });
}

interface Props {
  dagId: string;
  structure: Structure;
  runId: string | null;
  states: GraphStates | null;
  /** At the start of the toolbar: the choice of the run. */
  choice?: ReactNode;
  /** At its end: counts by state. */
  counts?: ReactNode;
  notice?: ReactNode;
}

export function GraphPage({ dagId, structure, runId, states, choice, counts, notice }: Props) {
  const t = useText();
  const address = useAddress();
  const set = useSetAddress();
  const narrow = useNarrow();
  const beside = useMemo(() => neighbours(structure), [structure]);
  const toggled = useMemo(() => (address.toggled ? address.toggled.split(",") : []), [address.toggled]);
  const closed = useMemo(() => closedGroups(structure, address.groups ?? "", toggled), [structure, address.groups, toggled]);
  const selected = address.task ? structure.ids.indexOf(address.task) : -1;
  const list = address.view === "list";
  const direction: Direction = address.dir === "down" ? "down" : "right";
  const hasGroups = useMemo(() => structure.ids.some((_, row) => isGroup(structure, row)), [structure]);
  const [search, setSearch] = useState(address.q ?? "");

  const tooLarge = useMemo(() => graphModel(structure, closed).nodes.length > DRAWN_MAX, [structure, closed]);
  const onlyPath = selected >= 0 && (address.only === "path" || tooLarge);
  const path = useMemo(() => (selected < 0 ? null : pathOf(structure, beside, selected, tooLarge ? NEAR : Infinity)), [structure, beside, selected, tooLarge]);
  const model = useMemo(
    () => graphModel(structure, closed, onlyPath && path ? new Set([...path.before, ...path.after]) : null),
    [structure, closed, onlyPath, path],
  );
  const key = `${[...closed].join()}|${onlyPath ? selected : ""}`;
  const drawn = useQuery({ ...layoutQuery(dagId, structure.version, key, model, direction), placeholderData: keepPreviousData });
  // The former layout, with its model, stays until the new layout is computed.
  const shown = drawn.data?.of === `${dagId}/${structure.version}` ? drawn.data : undefined;
  const standsFor = useMemo(() => representatives(structure, closed), [structure, closed]);
  const bright = useMemo(
    () => (path && shown && !onlyPath ? { rows: nodesOnPath(structure, shown.model, path), edges: edgesOnPath(structure, shown.model, path) } : null),
    [path, shown, structure, onlyPath],
  );
  const found = useMemo(() => {
    const wanted = (address.q ?? "").trim().toLowerCase();
    if (!wanted) return null;
    const rows = new Set<number>();
    structure.ids.forEach((id, row) => {
      if (!isGroup(structure, row) && (id.toLowerCase().includes(wanted) || (structure.labels[String(row)] ?? "").toLowerCase().includes(wanted))) rows.add(row);
    });
    return rows;
  }, [address.q, structure]);
  const foundBoxes = useMemo(() => (found ? new Set([...found].map((row) => standsFor[row] ?? row)) : null), [found, standsFor]);

  const select = useCallback((row: number) => set({ task: row < 0 ? "" : (structure.ids[row] ?? "") }), [set, structure]);
  const toggle = useCallback((row: number) => {
    const id = structure.ids[row] ?? "";
    set({ toggled: (toggled.includes(id) ? toggled.filter((one) => one !== id) : [...toggled, id]).join(",") });
  }, [set, structure, toggled]);
  usePageKeys(useMemo(() => [
    { key: "l", what: "graph.keyList" as const, run: () => set({ view: list ? "" : "list" }) },
    { key: "Escape", what: "graph.keyUnselect" as const, run: () => select(-1) },
  ], [set, list, select]));

  if (structure.ids.length === 0) {
    return <EmptyState icon={<Waypoints size={28} />} title={t("graph.empty")}><p>{t("graph.emptyMore")}</p></EmptyState>;
  }
  return (
    <div className={styles.page}>
      <div className={styles.toolbar}>
        {choice}
        <SearchField
          label={t("graph.search")} value={search} width={200}
          onChange={(value) => {
            setSearch(value);
            set({ q: value });
          }}
        />
        {found && <span className="muted small" role="status">{t("graph.found", { count: found.size })}</span>}
        <div className="row">
          <Button icon label={list ? t("graph.asGraph") : t("graph.asList")} onPress={() => set({ view: list ? "" : "list" })}>{list ? <Waypoints size={14} /> : <List size={14} />}</Button>
          {!list && <Button icon label={direction === "right" ? t("graph.toDown") : t("graph.toRight")} onPress={() => set({ dir: direction === "right" ? "down" : "" })}>{direction === "right" ? <ArrowDown size={14} /> : <ArrowRight size={14} />}</Button>}
          {!list && hasGroups && <Button icon label={t("graph.openAll")} onPress={() => set({ groups: "open", toggled: "" })}><UnfoldVertical size={14} /></Button>}
          {!list && hasGroups && <Button icon label={t("graph.closeAll")} onPress={() => set({ groups: "closed", toggled: "" })}><FoldVertical size={14} /></Button>}
        </div>
        {counts && <div className={styles.counts}>{counts}</div>}
      </div>
      {notice && <div className={styles.notice}><Notice>{notice}</Notice></div>}
      {onlyPath && <div className={styles.notice}><Notice>{tooLarge ? t("graph.near", { count: NEAR }) : t("graph.onlyPathShown")} <Button compact onPress={() => set({ only: "", ...(tooLarge ? { task: "" } : {}) })}>{t("graph.showAll")}</Button></Notice></div>}
      <div className={styles.main}>
        <div className={styles.stage}>
          {list ? (
            <GraphList structure={structure} states={states} beside={beside} found={found} onSelect={select} narrow={narrow} />
          ) : model.nodes.length > DRAWN_MAX ? (
            <EmptyState icon={<Waypoints size={28} />} title={t("graph.tooLarge", { count: model.nodes.length })}>
              <p>{t("graph.tooLargeMore", { most: formatNumber(DRAWN_MAX) })}</p>
              <Button look="primary" onPress={() => set({ view: "list" })}>{t("graph.asList")}</Button>
            </EmptyState>
          ) : drawn.error ? (
            drawn.error instanceof LayoutTooSlow ? (
              <EmptyState icon={<Waypoints size={28} />} title={t("graph.tooSlow")}><Button look="primary" onPress={() => set({ view: "list" })}>{t("graph.asList")}</Button></EmptyState>
            ) : <div className={styles.only}><ErrorState error={drawn.error} retry={() => void drawn.refetch()} /></div>
          ) : shown ? (
            <GraphCanvas
              structure={structure} model={shown.model} layout={shown.layout} states={states} selected={selected < 0 ? -1 : (standsFor[selected] ?? selected)} bright={bright} found={foundBoxes} onSelect={select} onFold={toggle}
              label={t("graph.graphOf", { dag: structure.display_name, count: structure.task_count })}
            />
          ) : <div className={styles.canvas} />}
          {!list && drawn.isFetching && <span className={styles.wait} role="status">{t("graph.drawing")}</span>}
        </div>
        {selected >= 0 && (
          <GraphPanel
            key={selected} dagId={dagId} runId={runId} structure={structure} states={states} beside={beside} row={selected} closed={closed.has(selected)} onlyPath={onlyPath}
            onOnlyPath={() => set({ only: onlyPath ? "" : "path" })} onSelect={select} onFold={toggle} onClose={() => select(-1)}
          />
        )}
      </div>
    </div>
  );
}

/** Shown until the structure is loaded. */
export function GraphWaiting({ query }: { query: { error: unknown; refetch: () => unknown } }) {
  return query.error ? <ErrorState error={query.error} retry={() => void query.refetch()} /> : <Loading />;
}
