// The graph of assets and DAGs. ELK places the boxes; they are links in a scrolling area, so that keyboard and screen reader reach them.
import { useQuery } from "@tanstack/react-query";
import { Boxes, ListTree, Network } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";

import { useAddress, useSetAddress } from "../../address";
import { enc } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { RemovableChip } from "../../parts/filters";
import { EmptyState, ErrorState, Loaded, Loading } from "../../parts/status";
import { To } from "../../parts/To";
import { computeLayout } from "../graph/engine";
import { roundedPath, type Layout } from "../graph/layout";
import { AgoText } from "../../time/TimeText";
import styles from "./assets.module.css";
import { assetDrawing, type AssetDrawing, type AssetNode } from "./graph";
import { assetGraphQuery } from "./query";

/** A layout of more boxes would take minutes. */
const DRAWN_MAX = 1_000;

export function AssetGraph() {
  const t = useText();
  const query = useQuery(assetGraphQuery);
  const { focus = "", q = "" } = useAddress();
  const setAddress = useSetAddress();
  const drawing = useMemo(() => query.data && assetDrawing(query.data.assets, focus), [query.data, focus]);
  const focused = focus && drawing?.nodes.find((one) => one.key === focus)?.name;
  return (
    <div className={styles.graphPage}>
      {(focused || (query.data && query.data.total_entries > query.data.assets.length)) && (
        <div className={styles.graphHead}>
          {focused && <RemovableChip label={t("assets.showAll")} onRemove={() => setAddress({ focus: "" })}>{t("assets.around", { name: focused })}</RemovableChip>}
          {query.data && query.data.total_entries > query.data.assets.length && (
            <span className="muted">{t("assets.graphShown", { shown: formatNumber(query.data.assets.length), total: formatNumber(query.data.total_entries) })}</span>
          )}
        </div>
      )}
      <Loaded query={query}>
        {() =>
          !drawing || drawing.nodes.length === 0 ? (
            <EmptyState icon={<Network size={28} aria-hidden />} title={t("assets.empty")}><p>{t("assets.graphEmpty")}</p></EmptyState>
          ) : drawing.nodes.length > DRAWN_MAX ? (
            <EmptyState icon={<Network size={28} aria-hidden />} title={t("assets.graphLarge", { count: drawing.nodes.length })}><p>{t("assets.graphLargeText")}</p></EmptyState>
          ) : (
            <Placed drawing={drawing} words={q.toLowerCase()} focus={focus} />
          )
        }
      </Loaded>
    </div>
  );
}

function Placed({ drawing, words, focus }: { drawing: AssetDrawing; words: string; focus: string }) {
  const shape = useMemo(() => JSON.stringify([drawing.nodes.map((one) => one.key), drawing.model.edges.map((one) => [one.from, one.to])]), [drawing]);
  const layout = useQuery({
    queryKey: ["asset-layout", shape], queryFn: ({ signal }) => computeLayout(drawing.model, "right", signal), staleTime: Infinity, gcTime: 60_000, retry: false,
  });
  if (layout.error) return <ErrorState error={layout.error} retry={() => void layout.refetch()} />;
  return layout.data ? <Drawn layout={layout.data} drawing={drawing} words={words} focus={focus} /> : <Loading lines={6} />;
}

function Drawn({ layout, drawing, words, focus }: { layout: Layout; drawing: AssetDrawing; words: string; focus: string }) {
  const t = useText();
  const area = useRef<HTMLDivElement>(null);
  const found = (one: AssetNode): boolean => words === "" || one.name.toLowerCase().includes(words) || (one.asset?.uri.toLowerCase().includes(words) ?? false);
  const first = drawing.nodes.findIndex((one) => (focus ? one.key === focus : words !== "" && found(one)));
  const box = layout.boxes.get(first);
  const left = box?.x, top = box?.y;
  useEffect(() => {
    const shown = area.current;
    if (shown && left !== undefined && top !== undefined) shown.scrollTo({ left: left - shown.clientWidth / 3, top: top - shown.clientHeight / 2 });
  }, [left, top]);
  return (
    <div ref={area} className={styles.graph} role="group" aria-label={t("assets.graph")}>
      <div className={styles.layer} style={{ width: layout.width, height: layout.height }}>
        <svg width={layout.width} height={layout.height} aria-hidden>
          <defs><marker id="asset-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.8L7.2 4L0 7.2z" /></marker></defs>
          {layout.edges.map((one) => <path key={one.id} d={roundedPath(one.points)} markerEnd="url(#asset-arrow)" />)}
        </svg>
        <ul>
        {drawing.nodes.map((one, row) => {
          const place = layout.boxes.get(row);
          return place && (
            <li key={one.key} className={styles.node} data-kind={one.kind} data-focus={one.key === focus || undefined} data-dim={!found(one) || undefined} style={{ left: place.x, top: place.y, width: place.width, height: place.height }}>
              <To href={one.asset ? `/assets/${one.asset.id}` : `/dags/${enc(one.name)}`} title={one.asset ? `${one.name}\n${one.asset.uri}` : one.name} label={t(one.asset ? "assets.assetNode" : "assets.dagNode", { name: one.name })}>
                {one.asset ? <Boxes size={16} aria-hidden /> : <ListTree size={16} aria-hidden />}
                <span className={styles.nodeTexts}>
                  <span className="cut">{one.name}</span>
                  {one.asset && <span className="muted cut">{one.asset.last_event_at ? <AgoText at={one.asset.last_event_at} /> : t("assets.neverUpdated")}</span>}
                </span>
              </To>
            </li>
          );
        })}
        </ul>
      </div>
    </div>
  );
}
