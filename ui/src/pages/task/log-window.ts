// The part of a log that is in memory: a window of lines that grows at both ends, follows what is written, and forgets what is far away.
// A log of 100 MB costs as much as one of 1 MB.
import { linesOf, type LogLine, type LogPiece } from "./log-rows";

export interface Ask {
  at: "offset" | "before" | "end" | "error";
  offset?: number;
  limit?: number;
  /** Seconds after which the server answers even if nothing new was written. */
  wait?: number;
}

export type Load = (ask: Ask, signal: AbortSignal) => Promise<LogPiece>;

export interface LogState {
  lines: readonly LogLine[];
  /** The bytes that the lines are. */
  start: number;
  end: number;
  size: number;
  grows: boolean;
  firstError: number | null;
  /** The whole log was examined for errors. */
  searched: boolean;
  notice: string | null;
  /** What is being loaded: nothing, the whole window, or more lines at one end. */
  loading: "" | "first" | "before" | "after";
  error: unknown;
  /** Counts the times that the window was opened at another place. */
  opened: number;
}

export const LINES_MAX = 60_000;
const PIECE = 256 * 1024;
const SCAN_PIECE = 1024 * 1024;
const FOLLOW_SECONDS = 20;
const SEARCHES_MAX = 100;
const PAUSE_MS = 2_000;

const EMPTY: LogState = {
  lines: [], start: 0, end: 0, size: 0, grows: false, firstError: null, searched: true, notice: null, loading: "first", error: null, opened: 0,
};

export class LogWindow {
  state: LogState = EMPTY;
  private readonly listeners = new Set<() => void>();
  private pieces: { start: number; end: number; lines: LogLine[] }[] = [];
  private abort = new AbortController();
  private following = false;

  constructor(private readonly load: Load) {}

  subscribe = (changed: () => void): (() => void) => {
    this.listeners.add(changed);
    return () => this.listeners.delete(changed);
  };

  snapshot = (): LogState => this.state;

  close(): void {
    this.abort.abort();
  }

  /** Opens the window at another place of the log. `found`: called before the new lines are shown. */
  async open(ask: Ask, found?: (piece: LogPiece) => void): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.following = false;
    this.set({ loading: "first", error: null });
    try {
      const piece = await this.load(ask, signal);
      if (signal.aborted) return;
      found?.(piece);
      this.pieces = [{ start: piece.start, end: piece.end, lines: linesOf(piece) }];
      this.set({ ...this.flat(), ...factsOf(piece), loading: "", opened: this.state.opened + 1 });
    } catch (error) {
      if (!signal.aborted) this.set({ loading: "", error });
    }
  }

  /** Loads more before the first line. */
  async before(): Promise<void> {
    if (this.state.loading || this.state.start === 0) return;
    await this.extend("before", { at: "before", offset: this.state.start, limit: PIECE }, (piece) => {
      this.pieces.unshift(piece);
      this.forget("end");
    });
  }

  /** Loads more after the last line. */
  async after(): Promise<void> {
    if (this.state.loading || this.state.end >= this.state.size) return;
    await this.extend("after", { at: "offset", offset: this.state.end, limit: PIECE }, (piece) => {
      this.pieces.push(piece);
      this.forget("start");
    });
  }

  private async extend(loading: "before" | "after", ask: Ask, put: (piece: { start: number; end: number; lines: LogLine[] }) => void): Promise<void> {
    const { signal } = this.abort;
    this.set({ loading, error: null });
    try {
      const found = await this.load(ask, signal);
      if (signal.aborted) return;
      if (found.end > found.start) put({ start: found.start, end: found.end, lines: linesOf(found) });
      this.set({ ...this.flat(), ...factsOf(found), loading: "" });
    } catch (error) {
      if (!signal.aborted) this.set({ loading: "", error });
    }
  }

  /** Appends what is written, until the log does not grow any more or the window is opened elsewhere. */
  async follow(): Promise<void> {
    const { signal } = this.abort;
    if (this.following) return;
    this.following = true;
    const gone = (): boolean => signal.aborted;
    const goesOn = (): boolean => this.following && this.state.grows && !gone();
    while (goesOn()) {
      const from = this.state.end;
      const waits = from >= this.state.size;
      try {
        const found = await this.load({ at: "offset", offset: from, limit: PIECE, ...(waits ? { wait: FOLLOW_SECONDS } : {}) }, signal);
        if (gone() || this.state.end !== from) continue;
        if (found.end > found.start) {
          this.pieces.push({ start: found.start, end: found.end, lines: linesOf(found) });
          this.forget("start");
        }
        this.set({ ...this.flat(), ...factsOf(found), error: null });
        if (found.grows && found.end === from && !waits) await pause(PAUSE_MS, signal);
      } catch (error) {
        if (gone()) return;
        this.set({ error });
        await pause(PAUSE_MS, signal);
      }
    }
    if (!gone()) this.following = false;
  }

  unfollow(): void {
    this.following = false;
  }

  /**
   * Looks for a line outside of the window: onwards from its end, or backwards from its start. Returns its offset, null: there is none.
   *
   * told: how many bytes were examined so far.
   */
  async scan(forward: boolean, wanted: (line: LogLine) => boolean, told: (bytes: number) => void, signal: AbortSignal): Promise<number | null> {
    let place = forward ? this.state.end : this.state.start;
    const from = place;
    while (!signal.aborted && (forward ? place < this.state.size : place > 0)) {
      const found = await this.load({ at: forward ? "offset" : "before", offset: place, limit: SCAN_PIECE }, signal);
      const lines = linesOf(found);
      const hit = forward ? lines.find(wanted) : lines.findLast(wanted);
      if (hit) return hit.offset;
      const next = forward ? found.end : found.start;
      if (next === place) return null;
      place = next;
      told(Math.abs(place - from));
    }
    return null;
  }

  /** Has the rest of a long log examined for the first error. Each request examines 64 MB. */
  async findFirstError(): Promise<void> {
    const { signal } = this.abort;
    for (let asked = 0; asked < SEARCHES_MAX && !this.state.searched && !signal.aborted; asked += 1) {
      try {
        this.set(factsOf(await this.load({ at: "offset", offset: this.state.end, limit: 1 }, signal)));
      } catch {
        return; // the log is shown, and `E` looks for errors itself
      }
    }
  }

  private forget(side: "start" | "end"): void {
    let count = this.pieces.reduce((sum, one) => sum + one.lines.length, 0);
    while (count > LINES_MAX && this.pieces.length > 1) {
      const gone = side === "start" ? this.pieces.shift() : this.pieces.pop();
      count -= gone?.lines.length ?? 0;
    }
  }

  private flat(): Pick<LogState, "lines" | "start" | "end"> {
    return { lines: this.pieces.flatMap((one) => one.lines), start: this.pieces[0]?.start ?? 0, end: this.pieces.at(-1)?.end ?? 0 };
  }

  private set(changes: Partial<LogState>): void {
    this.state = { ...this.state, ...changes };
    this.listeners.forEach((one) => one());
  }
}

function factsOf(found: LogPiece): Pick<LogState, "size" | "grows" | "firstError" | "searched" | "notice"> {
  return { size: found.size, grows: found.grows, firstError: found.first_error, searched: found.searched, notice: found.notice };
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    });
  });
}
