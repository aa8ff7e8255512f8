import { describe, expect, it } from "vitest";

import { LINES_MAX, LogWindow, type Ask } from "./log-window";
import type { LogPiece } from "./log-rows";

const LINE = 10;

/** A log of numbered lines of ten bytes, as the server answers. */
function server(total: { lines: number; grows: boolean }, asked: Ask[] = []) {
  return (ask: Ask): Promise<LogPiece> => {
    asked.push(ask);
    const size = total.lines * LINE, room = Math.floor((ask.limit ?? 2_000) / LINE);
    const from = ask.at === "offset" ? (ask.offset ?? 0) / LINE : Math.max(0, (ask.at === "before" ? (ask.offset ?? 0) : size) / LINE - room);
    const to = Math.min(total.lines, ask.at === "before" ? (ask.offset ?? 0) / LINE : from + room);
    const numbers = Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);
    return Promise.resolve({
      size, start: from * LINE, end: to * LINE, grows: total.grows, first_error: null, searched: true, notice: null,
      offsets: numbers.map((one) => one * LINE), texts: numbers.map((one) => `line ${one}`), times: numbers.map(() => null), levels: numbers.map(() => "info"),
      loggers: numbers.map(() => null),
    });
  };
}

describe("LogWindow", () => {
  it("opens at the end and grows backwards without gaps", async () => {
    const log = new LogWindow(server({ lines: 100_000, grows: false }));
    await log.open({ at: "end" });
    expect(log.state).toMatchObject({ end: 1_000_000, start: 998_000, loading: "" });
    await log.before();
    expect(log.state.lines.at(-1)?.plain).toBe("line 99999");
    expect(new Set(log.state.lines.map((one, at) => one.offset - at * LINE)).size).toBe(1);
  });

  it("forgets the far end, so that its size is bounded", async () => {
    const log = new LogWindow(server({ lines: 500_000, grows: false }));
    await log.open({ at: "offset", offset: 0 });
    for (let at = 0; at < 6; at += 1) await log.after();
    expect(log.state.lines.length).toBeLessThanOrEqual(LINES_MAX);
    expect(log.state.start).toBeGreaterThan(0);
    expect(log.state.lines[0]?.offset).toBe(log.state.start);
  });

  it("follows until the log has ended", async () => {
    const total = { lines: 10, grows: true };
    const asked: Ask[] = [];
    const answer = server(total, asked);
    const log = new LogWindow((ask) => {
      if (ask.wait) Object.assign(total, { lines: total.lines + 5, grows: total.lines < 20 });
      return answer(ask);
    });
    await log.open({ at: "end" });
    await log.follow();
    expect(log.state).toMatchObject({ size: 250, grows: false, end: 250 });
    expect(asked.slice(1).every((one) => one.wait && one.at === "offset")).toBe(true);
  });

  it("finds a line far from the window, in both directions", async () => {
    const log = new LogWindow(server({ lines: 400_000, grows: false }));
    await log.open({ at: "offset", offset: 0 });
    const told: number[] = [];
    const hit = (number: number) => log.scan(number > 1000, (line) => line.plain === `line ${number}`, (bytes) => told.push(bytes), new AbortController().signal);
    expect(await hit(350_000)).toBe(3_500_000);
    expect(told.length).toBeGreaterThan(1);
    expect(await hit(900_000)).toBeNull();
    await log.open({ at: "end" });
    expect(await hit(7)).toBe(70);
  });

  it("keeps what is shown when a request fails, and says so", async () => {
    let broken = false;
    const answer = server({ lines: 1_000, grows: false });
    const log = new LogWindow((ask) => (broken ? Promise.reject(new Error("no connection")) : answer(ask)));
    await log.open({ at: "end" });
    broken = true;
    await log.before();
    expect(log.state.lines.length).toBe(200);
    expect(log.state.error).toEqual(new Error("no connection"));
  });
});
