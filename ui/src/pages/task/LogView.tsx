// The log of one try: lines of fixed height, of which only those in view are drawn. Filters, options and the chosen line are the address.
import { useLocation, useNavigate } from "@tanstack/react-router";
import { ArrowDown, ArrowDownToLine, ArrowUp, ArrowUpToLine, ChevronDown, ChevronRight, CircleX, Download, FileX, Link as LinkIcon, LoaderCircle } from "lucide-react";
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";

import { useParam } from "../../address";
import { api, read } from "../../api/client";
import { formatBytes, formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { Checkbox, SearchField, Select, Switch } from "../../parts/fields";
import { EmptyState, ErrorState, Loading } from "../../parts/status";
import { toast, toastError } from "../../parts/toast";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { momentText } from "../../time/format";
import { AgoText } from "../../time/TimeText";
import { useZone } from "../../time/zone";
import { ansiPieces, type Piece } from "./ansi";
import { downloadLog } from "./download";
import { hitsIn, isError, LINE_HEIGHT, LEVELS, rankOf, rowAt, rowOfOffset, rowsOf, topsOf, type Level, type LogLine, type LogRow } from "./log-rows";
import { LINES_MAX, LogWindow, type Ask } from "./log-window";
import styles from "./log.module.css";

interface Props {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
  tryNumber: number;
  /** Of the shown try. */
  state: string | null;
  startedAt: string | null;
}

type TimeLook = "abs" | "rel" | "off";
const NEAR = 600;
/** On a phone there is no room for times, and long lines are wrapped, unless the address says otherwise. */
const PHONE = matchMedia("(max-width: 899px)").matches;
const NOTHING: ReadonlySet<number> = new Set();

export function LogView(props: Props) {
  const { dagId, runId, taskId, mapIndex, tryNumber } = props;
  const log = useMemo(
    () =>
      new LogWindow((ask: Ask, signal) =>
        read(
          api.GET("/api/tradewind/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/tries/{try_number}/log", {
            params: { path: { dag_id: dagId, run_id: runId, task_id: taskId, try_number: tryNumber }, query: { map_index: mapIndex, ...ask } }, signal,
          }),
        ),
      ),
    [dagId, runId, taskId, mapIndex, tryNumber],
  );
  // A new try is a new log: nothing of the old one stays.
  return <Log key={`${mapIndex}/${tryNumber}`} log={log} {...props} />;
}

function Log({ log, dagId, runId, taskId, mapIndex, tryNumber, state, startedAt }: Props & { log: LogWindow }) {
  const t = useText();
  const zone = useZone();
  const navigate = useNavigate();
  const hash = useLocation({ select: (one) => one.hash });
  const chosen = /^\d+$/.test(hash) ? Number(hash) : null;
  const [text, setText] = useParam("q");
  const [level, setLevel] = useParam("level", "debug");
  const [time, setTime] = useParam("time", PHONE ? "off" : "abs");
  const [wrapped, setWrapped] = useParam("wrap", PHONE ? "1" : "0");
  const wrap = wrapped === "1";
  const shown = useSyncExternalStore(log.subscribe, log.snapshot);
  const [folds, setFolds] = useState<ReadonlyMap<number, boolean>>(new Map());
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [view, setView] = useState({ top: 0, height: 600, width: 900 });
  const [follow, setFollow] = useState(false);
  const [scanned, setScanned] = useState<number | null>(null);
  const scanning = useRef<AbortController | null>(null);
  const cell = useCellWidth();
  const live = state === "running" || state === "restarting" || state === "queued";

  // --- opening -------------------------------------------------------------------------------------------------------
  const wantedFirst = useRef(chosen);
  const toShow = useRef<{ offset: number } | "top" | "bottom" | null>(null);
  useEffect(() => {
    const wanted = wantedFirst.current;
    void log.open(wanted === null ? { at: live ? "end" : "error" } : { at: "offset", offset: Math.max(0, wanted - 16 * 1024) }, (found) => {
      if (wanted !== null) toShow.current = { offset: wanted };
      else if (live) {
        toShow.current = "bottom";
        setFollow(true);
      } else if (found.first_error !== null) toShow.current = { offset: found.first_error };
      else toShow.current = found.start === 0 ? "top" : "bottom";
      if (!found.searched) void lateError(wanted === null && state === "failed");
    });
    async function lateError(show: boolean): Promise<void> {
      await log.findFirstError();
      const { firstError, opened } = log.snapshot();
      if (firstError === null || !show || opened !== 1) return;
      toShow.current = { offset: firstError };
      await log.open({ at: "offset", offset: Math.max(0, firstError - 16 * 1024) });
    }
    return () => log.close();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a log is opened once; later changes of the state only change what the switch does
  }, [log]);
  useEffect(() => {
    if (follow && shown.grows) void log.follow();
    else log.unfollow();
  }, [log, follow, shown.grows, shown.opened]);

  // --- rows ----------------------------------------------------------------------------------------------------------
  const { lines } = shown;
  const reveal = useMemo(() => (chosen === null ? NOTHING : new Set([chosen])), [chosen]);
  const hits = useMemo(() => {
    if (!text) return null;
    const low = text.toLowerCase();
    return new Set(lines.filter((one) => one.plain.toLowerCase().includes(low)).map((one) => one.offset));
  }, [lines, text]);
  const rows = useMemo(
    () => rowsOf(lines, rankOf(level), folds, hits && hits.size < 5_000 ? new Set([...hits, ...reveal]) : reveal),
    [lines, level, folds, hits, reveal],
  );
  const numbered = shown.start === 0;
  const numberWidth = view.width < 700 ? 52 : 76;
  const gutter = (time === "off" ? 0 : time === "rel" ? 84 : 104) + numberWidth;
  const columns = wrap ? Math.floor((view.width - gutter - 28) / cell) : 0;
  const tops = useMemo(() => topsOf(rows, lines, columns), [rows, lines, columns]);
  const total = tops[rows.length] ?? 0;
  const widest = useMemo(() => (columns ? 0 : lines.reduce((most, one) => Math.max(most, one.cells + (one.more ? 40 : 0)), 0)), [lines, columns]);

  // --- places --------------------------------------------------------------------------------------------------------
  const anchor = useRef<{ offset: number; part: number; delta: number } | null>(null);
  const keepAnchor = useCallback(
    (top: number) => {
      const at = rowAt(tops, top);
      const line = rows[at] && lines[rows[at].at];
      anchor.current = line ? { offset: line.offset, part: line.part, delta: top - (tops[at] ?? 0) } : null;
    },
    [rows, lines, tops],
  );
  useLayoutEffect(() => {
    if (!box) return;
    const wanted = toShow.current;
    if (wanted !== null && !shown.loading) {
      toShow.current = null;
      if (wanted === "top") box.scrollTo({ top: 0 });
      else if (wanted === "bottom") box.scrollTo({ top: box.scrollHeight });
      else box.scrollTo({ top: (tops[Math.max(0, rowOfOffset(rows, lines, wanted.offset))] ?? 0) - box.clientHeight / 3 });
    } else if (follow) box.scrollTo({ top: box.scrollHeight });
    else if (anchor.current) {
      const at = rowOfOffset(rows, lines, anchor.current.offset, anchor.current.part);
      const top = (tops[Math.max(0, at)] ?? 0) + anchor.current.delta;
      if (Math.abs(top - box.scrollTop) > 1) box.scrollTo({ top: top });
    }
    keepAnchor(box.scrollTop);
  }, [box, rows, lines, tops, follow, shown.loading, shown.opened, keepAnchor]);
  useEffect(() => {
    if (!box) return undefined;
    const measure = (): void => setView({ top: box.scrollTop, height: box.clientHeight, width: box.clientWidth });
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, [box]);
  const lastTop = useRef(0);
  function scrolled(): void {
    if (!box) return;
    const { scrollTop, clientHeight, scrollHeight } = box;
    keepAnchor(scrollTop);
    setView((old) => (old.top === scrollTop && old.height === clientHeight ? old : { top: scrollTop, height: clientHeight, width: box.clientWidth }));
    if (follow && scrollTop < lastTop.current - 2 && scrollTop + clientHeight < scrollHeight - 40) setFollow(false);
    lastTop.current = scrollTop;
  }
  // More at the ends, while they are near; a filter that leaves few rows stops at the bound of the window.
  useEffect(() => {
    if (shown.loading || shown.error || follow || lines.length === 0) return;
    const room = total > view.height || lines.length < LINES_MAX;
    if (room && view.top < NEAR && shown.start > 0) void log.before();
    else if (room && view.top + view.height > total - NEAR && shown.end < shown.size) void log.after();
  }, [log, shown, lines.length, total, view, follow]);

  // --- moving --------------------------------------------------------------------------------------------------------
  const choose = useCallback(
    (offset: number | null) => void navigate({ to: ".", search: true, hash: offset === null ? "" : String(offset), replace: true, hashScrollIntoView: false, resetScroll: false }),
    [navigate],
  );
  const goTo = useCallback(
    async (offset: number) => {
      setFollow(false);
      const now = log.snapshot();
      toShow.current = { offset };
      if (offset < now.start || offset >= now.end) await log.open({ at: "offset", offset: Math.max(0, offset - 16 * 1024) });
      choose(offset);
      if (box && offset >= now.start && offset < now.end) {
        const at = rowOfOffset(rows, lines, offset);
        const top = tops[Math.max(0, at)] ?? 0;
        if (top < box.scrollTop + LINE_HEIGHT || top > box.scrollTop + box.clientHeight - 3 * LINE_HEIGHT) box.scrollTo({ top: top - box.clientHeight / 3 });
        toShow.current = null;
      }
    },
    [log, choose, box, rows, lines, tops],
  );
  const find = useCallback(
    async (forward: boolean, wanted: (line: LogLine) => boolean) => {
      scanning.current?.abort();
      const from = chosen ?? (forward ? -1 : Infinity);
      const inside = forward ? lines.find((one) => one.offset > from && wanted(one)) : lines.findLast((one) => one.offset < from && one.part === 0 && wanted(one))
        ?? lines.findLast((one) => one.offset < from && wanted(one));
      if (inside) {
        await goTo(inside.offset);
        return;
      }
      const stop = new AbortController();
      scanning.current = stop;
      setScanned(0);
      try {
        const outside = await log.scan(forward, wanted, setScanned, stop.signal);
        if (outside !== null) await goTo(outside);
        else if (!stop.signal.aborted) {
          const again = forward && log.snapshot().start === 0 ? log.snapshot().lines.find(wanted) : !forward && log.snapshot().end >= log.snapshot().size ? log.snapshot().lines.findLast(wanted) : undefined;
          toast(again ? t("task.wrapped") : t("task.nothingFound"));
          if (again) await goTo(again.offset);
        }
      } catch (error) {
        if (!stop.signal.aborted) toastError(error);
      } finally {
        if (scanning.current === stop) setScanned(null);
      }
    },
    [chosen, lines, goTo, log, t],
  );
  useEffect(() => () => scanning.current?.abort(), []);
  const findText = useCallback(
    (forward: boolean) => {
      const low = text.toLowerCase();
      if (low) void find(forward, (line) => line.plain.toLowerCase().includes(low));
    },
    [find, text],
  );
  const nextError = useCallback(
    (forward: boolean) => {
      const { firstError } = log.snapshot();
      if (forward && chosen === null && firstError !== null) void goTo(firstError);
      else void find(forward, (line) => line.part === 0 && isError(line));
    },
    [log, chosen, goTo, find],
  );
  const toEnd = useCallback(async () => {
    const now = log.snapshot();
    choose(null);
    if (now.end < now.size) {
      toShow.current = "bottom";
      await log.open({ at: "end" });
    } else box?.scrollTo({ top: box.scrollHeight });
    if (now.grows) setFollow(true);
  }, [log, box, choose]);
  const toStart = useCallback(async () => {
    setFollow(false);
    choose(null);
    if (log.snapshot().start > 0) {
      toShow.current = "top";
      await log.open({ at: "offset", offset: 0 });
    } else box?.scrollTo({ top: 0 });
  }, [log, box, choose]);
  const keys = useMemo<PageKey[]>(
    () => [
      { key: "E", what: "task.keyNextError", run: () => nextError(true) },
      { key: "e", what: "task.keyNextError", run: () => nextError(true) },
      { key: "n", what: "task.keyNext", run: () => findText(true) },
      { key: "N", what: "task.keyPrevious", run: () => findText(false) },
      { key: "g g", what: "task.toStart", run: () => void toStart() },
      { key: "G", what: "task.toEnd", run: () => void toEnd() },
      { key: "f", what: "task.follow", run: () => setFollow((now) => !now) },
    ],
    [nextError, findText, toStart, toEnd],
  );
  usePageKeys(keys);

  // --- what is shown -------------------------------------------------------------------------------------------------
  const first = rowAt(tops, Math.max(0, view.top - 10 * LINE_HEIGHT));
  const last = Math.min(rows.length, rowAt(tops, view.top + view.height + 10 * LINE_HEIGHT) + 1);
  const began = startedAt ? Date.parse(startedAt) : lines[0]?.time ? Date.parse(lines[0].time) : 0;
  const empty = shown.opened > 0 && shown.size === 0;
  const [saving, setSaving] = useState(false);

  return (
    <div className={styles.log}>
      <div className={styles.toolbar}>
        <div className={styles.find}>
          <div className="grow" onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            findText(!event.shiftKey);
          }}>
            <SearchField label={t("task.search")} value={text} onChange={setText} />
          </div>
          <Button compact icon label={t("task.keyPrevious")} refused={text ? undefined : t("task.typeFirst")} onPress={() => findText(false)}><ArrowUp size={14} /></Button>
          <Button compact icon label={t("task.keyNext")} refused={text ? undefined : t("task.typeFirst")} onPress={() => findText(true)}><ArrowDown size={14} /></Button>
        </div>
        <span className={styles.found} role="status">
          {scanned !== null ? (
            <>
              <LoaderCircle size={12} aria-hidden /> {t("task.searching", { size: formatBytes(scanned) })}{" "}
              <button type="button" className={styles.link} onClick={() => scanning.current?.abort()}>{t("common.cancel")}</button>
            </>
          ) : hits ? t("task.hits", { count: hits.size }) : null}
        </span>
        <span className={styles.options} data-sideways>
          <Button compact onPress={() => nextError(true)} refused={shown.firstError === null && shown.searched ? t("task.noErrors") : undefined}>
            <CircleX size={14} aria-hidden /> {t("task.nextError")}
          </Button>
          <Select<Level> compact label={t("task.level")} value={level as Level} onChange={setLevel} choices={LEVELS.map((one) => ({ value: one, label: t(`task.level_${one}`) }))} />
          <Select<TimeLook>
            compact label={t("task.time")} value={time as TimeLook} onChange={setTime}
            choices={(["abs", "rel", "off"] as const).map((one) => ({ value: one, label: t(`task.time_${one}`) }))}
          />
          <Checkbox selected={wrap} onChange={(on) => setWrapped(on ? "1" : "0")}>{t("task.wrap")}</Checkbox>
          <Switch selected={follow} disabled={!shown.grows} onChange={(on) => (on ? void toEnd() : setFollow(false))}>{t("task.follow")}</Switch>
          <span className={styles.jumps}>
            <Button compact look="quiet" icon label={t("task.toStart")} onPress={() => void toStart()}><ArrowUpToLine size={14} /></Button>
            <Button compact look="quiet" icon label={t("task.toEnd")} onPress={() => void toEnd()}><ArrowDownToLine size={14} /></Button>
            <Button
              compact look="quiet" icon label={t("task.download")} pending={saving} refused={empty ? t("task.emptyTitle") : undefined}
              onPress={() => {
                setSaving(true);
                void downloadLog({ dagId, runId, taskId, mapIndex, tryNumber }).catch(toastError).finally(() => setSaving(false));
              }}
            >
              <Download size={14} />
            </Button>
          </span>
        </span>
      </div>
      {shown.error !== null && <ErrorState error={shown.error} retry={() => void (shown.opened ? log.after() : log.open({ at: live ? "end" : "error" }))} />}
      {empty ? (
        <EmptyState icon={<FileX size={28} />} title={t(shown.notice || !(live && startedAt) ? "task.noLog" : "task.emptyTitle")}>
          <p className="wrap">{shown.notice ?? (live && startedAt ? t("task.emptySince") : t("task.emptyEnded"))}{!shown.notice && live && startedAt && <> <AgoText at={startedAt} /></>}</p>
        </EmptyState>
      ) : shown.opened === 0 && !shown.error ? (
        <Loading lines={14} />
      ) : (
        <div className={styles.middle}>
          <div ref={setBox} className={styles.box} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label={t("task.log")}>
            <div className={styles.inner} data-narrow={numberWidth < 76 || undefined} style={{ height: total + 28, minWidth: columns ? undefined : Math.ceil(widest * cell) + gutter + 40 }}>
              {rows.slice(first, last).map((row, at) => {
                const line = lines[row.at] as LogLine;
                return (
                  <Row
                    key={`${line.offset}.${line.part}`} row={row} line={line} top={tops[first + at] ?? 0} height={(tops[first + at + 1] ?? 0) - (tops[first + at] ?? 0)}
                    number={numbered ? row.at + 1 : null} time={time === "off" || !line.time || line.part > 0 ? "" : time === "rel" ? sinceText(Date.parse(line.time) - began) : clock(line.time, zone)}
                    look={time} chosen={line.offset === chosen} wrapped={columns > 0} text={text} choose={choose} setFolds={setFolds}
                  />
                );
              })}
              <p className={styles.end} style={{ top: total }}>
                {shown.end < shown.size ? t("task.moreBelow", { size: formatBytes(shown.size - shown.end) }) : shown.grows ? t("task.growing") : t("task.endOfLog")}
              </p>
            </div>
          </div>
          {shown.size > shown.end - shown.start && (
            <ByteMap start={shown.start} end={shown.end} size={shown.size} error={shown.firstError} share={total ? view.top / total : 0} goTo={(offset) => void goTo(offset)} />
          )}
        </div>
      )}
    </div>
  );
}

/** `02:00:07.123` of a moment. */
function clock(moment: string, zone: string): string {
  return `${momentText(moment, zone).slice(11)}.${String(Math.floor(Date.parse(moment) % 1000)).padStart(3, "0")}`;
}

/** `+1:02:03.4`: the time since the start of the try. */
function sinceText(milliseconds: number): string {
  const sign = milliseconds < 0 ? "−" : "+";
  const tenths = Math.round(Math.abs(milliseconds) / 100);
  const seconds = Math.floor(tenths / 10), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${sign}${hours ? `${hours}:${two(minutes % 60)}` : String(minutes)}:${two(seconds % 60)}.${tenths % 10}`;
}

interface RowProps {
  row: LogRow;
  line: LogLine;
  top: number;
  height: number;
  number: number | null;
  time: string;
  look: string;
  chosen: boolean;
  wrapped: boolean;
  text: string;
  choose: (offset: number) => void;
  setFolds: (change: (old: ReadonlyMap<number, boolean>) => ReadonlyMap<number, boolean>) => void;
}

const Row = memo(function Row({ row, line, top, height, number, time, look, chosen, wrapped, text, choose, setFolds }: RowProps) {
  const t = useText();
  const rank = rankOf(line.level);
  const { group } = row;
  return (
    <div
      className={styles.row} style={{ top, height }} data-chosen={chosen || undefined} data-level={rank >= 3 ? "error" : rank === 2 ? "warning" : rank === 0 ? "debug" : undefined}
      data-wrapped={wrapped || undefined}
    >
      <a
        className={styles.number} href={`#${line.offset}`} title={t("task.lineLink")} tabIndex={-1}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          choose(line.offset);
        }}
      >
        {number === null ? <LinkIcon size={11} aria-label={t("task.lineLink")} /> : formatNumber(number)}
      </a>
      {look !== "off" && <span className={styles.time} data-look={look} title={line.time ?? undefined}>{time}</span>}
      {group ? (
        <button
          type="button" className={styles.fold} aria-expanded={group.open} style={{ marginLeft: row.depth * 14 }}
          onClick={() => setFolds((old) => new Map(old).set(line.offset, !group.open))}
        >
          {group.open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
          {group.title} <span className="muted">{t("task.foldLines", { count: group.lines })}</span>
        </button>
      ) : (
        <span className={styles.text} style={row.depth ? { paddingLeft: `${row.depth * 2}ch` } : undefined} title={line.logger ?? undefined}>
          {rank >= 2 && line.part === 0 && <span className="hidden">{line.level} </span>}
          <Styled text={line.text} plain={line.plain} wanted={text} />
          {line.more > 0 && <em className="muted"> … {t("task.cutLine", { count: line.more })}</em>}
        </span>
      )}
    </div>
  );
});

const COLOURS = Array.from({ length: 16 }, (_, at) => styles[`c${at}`] ?? "");
const BACKGROUNDS = Array.from({ length: 16 }, (_, at) => styles[`b${at}`] ?? "");

function classOf(piece: Piece): string | undefined {
  const found = [
    piece.colour === undefined ? "" : COLOURS[piece.colour], piece.background === undefined ? "" : BACKGROUNDS[piece.background],
    piece.bold && styles.bold, piece.faint && styles.faint, piece.italic && styles.italic, piece.underline && styles.underline,
  ].filter(Boolean);
  return found.length ? found.join(" ") : undefined;
}

/** A line with its colours, and the places of the search marked. */
function Styled({ text, plain, wanted }: { text: string; plain: string; wanted: string }) {
  const pieces = text === plain ? [{ text: plain }] : ansiPieces(text);
  const hits = hitsIn(plain, wanted);
  let place = 0, next = 0;
  return pieces.map((piece, at) => {
    const start = place;
    place += piece.text.length;
    const inside: React.ReactNode[] = [];
    let done = 0;
    while (next < hits.length) {
      const [from, to] = hits[next] as [number, number];
      if (from >= place) break;
      const a = Math.max(done, from - start), b = Math.min(piece.text.length, to - start);
      if (a > done) inside.push(piece.text.slice(done, a));
      inside.push(<mark key={from}>{piece.text.slice(a, b)}</mark>);
      done = b;
      if (to > place) break;
      next += 1;
    }
    inside.push(piece.text.slice(done));
    const name = classOf(piece);
    return name ? <span key={at} className={name}>{inside}</span> : <span key={at}>{inside}</span>;
  });
}

/** The whole log as a strip: what is loaded, where the view is, the first error. A click opens the log there. */
function ByteMap({ start, end, size, error, share, goTo }: { start: number; end: number; size: number; error: number | null; share: number; goTo: (offset: number) => void }) {
  const t = useText();
  const percent = (offset: number): string => `${(offset / size) * 100}%`;
  return (
    <button
      type="button" className={styles.map} title={t("task.map", { size: formatBytes(size) })} aria-label={t("task.map", { size: formatBytes(size) })} tabIndex={-1}
      onClick={(event) => {
        const { top, height } = event.currentTarget.getBoundingClientRect();
        goTo(Math.floor(((event.clientY - top) / height) * size));
      }}
    >
      <i className={styles.loaded} style={{ top: percent(start), height: percent(end - start) }} />
      {error !== null && <i className={styles.mapError} style={{ top: percent(error) }} />}
      <i className={styles.here} style={{ top: percent(start + (end - start) * share) }} />
    </button>
  );
}

/** The width of a character of the log's font, pixels. */
function useCellWidth(): number {
  return useMemo(() => {
    const context = document.createElement("canvas").getContext("2d");
    if (!context) return 7.3;
    context.font = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
    return context.measureText("0".repeat(100)).width / 100 || 7.3;
  }, []);
}
