// The whole graph, small. A click or a drag moves the view.
import { memo, useRef, type PointerEvent } from "react";

import { useText } from "../../i18n";
import { stateColour, stateOf } from "../../state/states";
import type { Layout, View } from "./layout";
import type { GraphModel } from "./model";
import styles from "./graph.module.css";

const WIDTH = 176, HEIGHT = 112;

interface Props {
  layout: Layout;
  model: GraphModel;
  stateAt: (row: number) => string | null;
  view: View;
  width: number;
  height: number;
  /** Moves a point of the graph to the middle of the view. */
  onMove: (x: number, y: number) => void;
}

export function Minimap({ layout, model, stateAt, view, width, height, onMove }: Props) {
  const t = useText();
  const box = useRef<SVGSVGElement>(null);
  const zoom = Math.min(WIDTH / layout.width, HEIGHT / layout.height);
  const left = (WIDTH - layout.width * zoom) / 2, top = (HEIGHT - layout.height * zoom) / 2;
  const move = (event: PointerEvent): void => {
    const place = box.current?.getBoundingClientRect();
    if (place) onMove((event.clientX - place.left - left) / zoom, (event.clientY - place.top - top) / zoom);
  };
  return (
    <svg
      ref={box} className={styles.minimap} width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t("graph.minimap")}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        move(event);
      }}
      onPointerMove={(event) => {
        if (event.buttons & 1) move(event);
      }}
    >
      <g transform={`translate(${left} ${top}) scale(${zoom})`}>
        <Boxes layout={layout} model={model} stateAt={stateAt} least={2 / zoom} />
        <rect
          className={styles.minimapView} x={-view.x / view.zoom} y={-view.y / view.zoom} width={width / view.zoom} height={height / view.zoom}
          strokeWidth={1.5 / zoom} rx={3 / zoom}
        />
      </g>
    </svg>
  );
}

const Boxes = memo(function Boxes({ layout, model, stateAt, least }: Pick<Props, "layout" | "model" | "stateAt"> & { least: number }) {
  return (
    <>
      {model.nodes.map(({ row, kind }) => {
        const box = layout.boxes.get(row);
        if (!box) return null;
        const state = stateOf(stateAt(row));
        const plain = kind === "open" || state === "none";
        return (
          <rect
            key={row} x={box.x} y={box.y} width={Math.max(least, box.width)} height={Math.max(least, box.height)}
            className={kind === "open" ? styles.minimapGroup : styles.minimapBox} {...(plain ? {} : { style: { fill: stateColour(state) } })}
          />
        );
      })}
    </>
  );
});
