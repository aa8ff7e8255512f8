// Draws the cells on a canvas. Equal states that stand below one another are one fill of a pattern: the time depends on what is in view,
// and hardly on how many cells that are.
import { GLYPHS, stateColour, stateInk, stateOf, STATES, type State } from "../../state/states";
import { ABSENT, type Column } from "./cells";
import type { Row } from "./rows";

export const ROW = 24, COLUMN = 22, CELL = 15;

const resolved = new Map<string, string>();
let resolvedTheme: string | undefined;

/**
 * The colour of a custom property, as the theme has it now. It is kept: to read a computed style, the browser has to finish all styles of
 * the page first.
 */
export function resolve(colour: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  if (!name) return colour;
  const { theme } = document.documentElement.dataset;
  if (theme !== resolvedTheme) resolved.clear();
  resolvedTheme = theme;
  let found = resolved.get(name);
  if (found === undefined) resolved.set(name, (found = getComputedStyle(document.documentElement).getPropertyValue(name).trim()));
  return found;
}

/** Reads the colours of all states while the page is still empty. */
export function readColours(): void {
  for (const colour of ["--sunken", "--accent", "--edge"]) resolve(`var(${colour})`);
  for (const state of STATES) for (const colour of [stateColour(state), stateInk(state)]) resolve(colour);
}

/** A pattern for each state: one cell with its glyph. Each is made when it is drawn first; a change of the theme or of the density of the screen needs new tiles. */
export class Tiles {
  readonly #made = new Map<string, CanvasPattern | undefined>();
  readonly #ratio: number;

  /** `ratio`: pixels of the screen for each pixel of the page. */
  constructor(ratio: number) {
    this.#ratio = ratio;
  }

  /** The pattern of a state, for this context; undefined: the browser has no memory for it. */
  of(context: CanvasRenderingContext2D, name: string): CanvasPattern | undefined {
    if (!this.#made.has(name)) this.#made.set(name, makeTile(context, name, this.#ratio));
    return this.#made.get(name);
  }
}

function makeTile(context: CanvasRenderingContext2D, name: string, ratio: number): CanvasPattern | undefined {
  const canvas = new OffscreenCanvas(Math.round(COLUMN * ratio), Math.round(ROW * ratio));
  const inner = canvas.getContext("2d");
  if (!inner) return undefined;
  inner.scale(canvas.width / COLUMN, canvas.height / ROW);
  drawCell(inner, stateOf(name), (COLUMN - CELL) / 2, (ROW - CELL) / 2);
  const pattern = context.createPattern(canvas, "repeat") ?? undefined;
  pattern?.setTransform(new DOMMatrix().scale(COLUMN / canvas.width, ROW / canvas.height));
  return pattern;
}

function drawCell(context: OffscreenCanvasRenderingContext2D, state: State, x: number, y: number): void {
  // Success is small and unmarked; all else is larger and has a glyph.
  const quiet = state === "success";
  const size = quiet ? CELL - 2 : CELL + 1;
  const inset = (CELL - size) / 2;
  context.beginPath();
  context.roundRect(x + inset + 0.5, y + inset + 0.5, size - 1, size - 1, quiet ? 3 : 3.5);
  const colour = resolve(stateColour(state));
  if (colour !== "transparent") {
    context.fillStyle = colour;
    context.fill();
  }
  context.strokeStyle = state === "none" || state === "removed" ? resolve("var(--edge)") : "rgb(0 0 0 / 0.22)";
  context.setLineDash(state === "removed" ? [2, 1.6] : []);
  context.lineWidth = 1;
  if (!quiet) context.stroke();
  context.setLineDash([]);
  const glyph = GLYPHS[state];
  if (quiet || !glyph.d) return;
  context.save();
  context.translate(x + inset, y + inset);
  context.scale(size / 16, size / 16);
  const path = new Path2D(glyph.d);
  if (glyph.fill) {
    context.fillStyle = resolve(stateInk(state));
    context.fill(path);
  } else {
    context.strokeStyle = resolve(stateInk(state));
    context.lineWidth = 2;
    context.lineCap = context.lineJoin = "round";
    context.stroke(path);
  }
  context.restore();
}

export interface View {
  width: number;
  height: number;
  scrollX: number;
  scrollY: number;
}

interface Painted {
  rows: readonly Row[];
  columns: readonly Column[];
  states: readonly string[];
  tiles: Tiles;
  /** Index of a row and of a column that are marked by the pointer or the selection; -1: none. */
  row: number;
  column: number;
  chosenColumn: number;
  stripe: string;
  accent: string;
  /** The chosen cell. */
  chosen: readonly [number, number] | null;
}

export function drawCells(context: CanvasRenderingContext2D, view: View, painted: Painted): void {
  const { rows, columns, tiles, states } = painted;
  context.clearRect(0, 0, view.width, view.height);
  const firstRow = Math.max(0, Math.floor(view.scrollY / ROW)), lastRow = Math.min(rows.length, Math.ceil((view.scrollY + view.height) / ROW));
  const firstColumn = Math.max(0, Math.floor(view.scrollX / COLUMN)), lastColumn = Math.min(columns.length, Math.ceil((view.scrollX + view.width) / COLUMN));
  context.save();
  context.translate(-view.scrollX, -view.scrollY);
  context.fillStyle = painted.stripe;
  for (const column of new Set([painted.column, painted.chosenColumn])) if (column >= 0) context.fillRect(column * COLUMN, view.scrollY, COLUMN, view.height);
  if (painted.row >= 0) context.fillRect(view.scrollX, painted.row * ROW, view.width, ROW);
  for (let column = firstColumn; column < lastColumn; column += 1) {
    const cells = columns[column]?.cells;
    if (!cells) continue;
    let from = firstRow;
    while (from < lastRow) {
      const state = cells[rows[from]?.at ?? 0] ?? ABSENT;
      let to = from + 1;
      while (to < lastRow && (cells[rows[to]?.at ?? 0] ?? ABSENT) === state) to += 1;
      const tile = state === ABSENT ? undefined : tiles.of(context, states[state] ?? "none");
      if (tile) {
        context.fillStyle = tile;
        context.fillRect(column * COLUMN, from * ROW, COLUMN, (to - from) * ROW);
      }
      from = to;
    }
  }
  if (painted.chosen) {
    const [row, column] = painted.chosen;
    context.strokeStyle = painted.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.roundRect(column * COLUMN + 1, row * ROW + 2, COLUMN - 2, ROW - 4, 5);
    context.stroke();
  }
  context.restore();
}
