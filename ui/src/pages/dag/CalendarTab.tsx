// The runs of a DAG by day: the worst state of each day, planned runs hollow. A day opens the list of its runs.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { CalendarDays, X } from "lucide-react";
import { memo, useCallback, useMemo } from "react";

import { useParam, useSetAddress } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { dagTopic, live } from "../../api/query";
import { formatNumber, useLanguage, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { Select } from "../../parts/fields";
import { EmptyState, Loaded, Notice } from "../../parts/status";
import { StateChip, StateIcon } from "../../state/StateIcon";
import { runTypeWord, stateWord } from "../../state/states";
import { momentText } from "../../time/format";
import { useNow } from "../../time/now";
import { DurationText, TimeText } from "../../time/TimeText";
import { useZone } from "../../time/zone";
import { addDays, dayStart, orderedMonths, shownMonths, type Month } from "./calendar";
import styles from "./calendar.module.css";

const YEARS = 6;
const RUNS_MAX = 100;

export default function CalendarTab() {
  const t = useText();
  const { dagId = "" } = useParams({ strict: false });
  const zone = useZone();
  const [year, setYear] = useParam("year");
  const [day, setDay] = useParam("day");
  const today = momentText(useNow(), zone, "day");
  const months = useMemo(() => shownMonths(year, today), [year, today]);
  const first = `${months[0]?.id ?? today.slice(0, 7)}-01`, last = addDays(`${months.at(-1)?.id ?? today.slice(0, 7)}-28`, 4);
  const query = useQuery({
    ...live(["dag", dagId, "calendar", zone, first, last], [dagTopic(dagId)], (signal) =>
      read(api.GET("/api/tradewind/v1/dags/{dag_id}/calendar", {
        params: { path: { dag_id: dagId }, query: { timezone: zone, start: dayStart(first, zone), end: dayStart(last, zone) } }, signal,
      }))),
    placeholderData: (old?: Schemas["Calendar"]) => (old?.dag_id === dagId ? old : undefined),
  });
  const ordered = useMemo(() => orderedMonths(months, year, today, query.data?.days[0]?.date, query.data?.days.at(-1)?.date), [months, year, today, query.data]);
  const choose = useCallback((value: string) => setDay(value === day ? "" : value), [setDay, day]);
  const thisYear = Number(today.slice(0, 4));
  return (
    <div className={styles.page}>
      <div className={styles.toolbar}>
        <Select
          label={t("calendar.period")} value={year || "recent"} onChange={(value) => setYear(value === "recent" ? "" : value)}
          choices={[{ value: "recent", label: t("calendar.recent") }, ...Array.from({ length: YEARS }, (_, at) => ({ value: String(thisYear - at), label: String(thisYear - at) }))]}
        />
        <span className="muted small">{t("calendar.zone", { zone })}</span>
        {query.data && <Totals dagId={dagId} days={query.data.days} />}
      </div>
      <div className={styles.main}>
        <div className={styles.scroll}>
          <Loaded query={query}>
            {(calendar) => (
              <>
                {!calendar.planned_known && <div className={styles.notice}><Notice>{t("calendar.noPlan")}</Notice></div>}
                {calendar.days.length === 0 && <EmptyState icon={<CalendarDays size={28} />} title={t("calendar.empty")}><p>{t("calendar.emptyMore")}</p></EmptyState>}
                {calendar.days.length > 0 && <Months months={ordered} days={calendar.days} today={today} day={day} onDay={choose} />}
              </>
            )}
          </Loaded>
        </div>
        {/^\d{4}-\d\d-\d\d$/.test(day) && <DayRuns key={day} dagId={dagId} day={day} zone={zone} known={query.data?.days.find((one) => one.date === day)} onClose={() => setDay("")} />}
      </div>
    </div>
  );
}

function Totals({ dagId, days }: { dagId: string; days: readonly Schemas["CalendarDay"][] }) {
  const t = useText();
  const sum = (of: (day: Schemas["CalendarDay"]) => number): number => days.reduce((total, one) => total + of(one), 0);
  const counts = [["failed", sum((one) => one.failed)], ["running", sum((one) => one.running)], ["queued", sum((one) => one.queued)], ["success", sum((one) => one.success)]] as const;
  const planned = sum((one) => one.planned);
  return (
    <div className={styles.counts}>
      {counts.map(([state, number]) => number > 0 && (
        <Link key={state} to="/dags/$dagId/runs" params={{ dagId }} search={{ state }}>
          <StateIcon state={state} decorative /> {stateWord(state)} <b className="figures">{formatNumber(number)}</b>
        </Link>
      ))}
      {planned > 0 && <span><i className={styles.planned} aria-hidden /> {t("calendar.plannedWord")} <b className="figures">{formatNumber(planned)}</b></span>}
    </div>
  );
}

interface MonthsProps {
  months: readonly Month[];
  days: readonly Schemas["CalendarDay"][];
  today: string;
  day: string;
  onDay: (day: string) => void;
}

const Months = memo(function Months({ months, days, today, day, onDay }: MonthsProps) {
  const language = useLanguage();
  const known = useMemo(() => new Map(days.map((one) => [one.date, one])), [days]);
  const monthName = new Intl.DateTimeFormat(language, { month: "long", year: "numeric", timeZone: "UTC" });
  // 2024-01-01 was a Monday.
  const weekdays = Array.from({ length: 7 }, (_, at) => new Intl.DateTimeFormat(language, { weekday: "narrow", timeZone: "UTC" }).format(Date.UTC(2024, 0, 1 + at)));
  return (
    <div className={styles.months}>
      {months.map((month) => (
        <section key={month.id} aria-label={monthName.format(Date.parse(`${month.id}-01T00:00:00Z`))}>
          <h3 className={styles.month}>{monthName.format(Date.parse(`${month.id}-01T00:00:00Z`))}</h3>
          <div className={styles.week} aria-hidden>{weekdays.map((name, at) => <span key={at} className={styles.weekday}>{name}</span>)}</div>
          {month.weeks.map((week, at) => (
            <div key={at} className={styles.week}>
              {week.map((date, place) => date ? <Day key={date} date={date} day={known.get(date)} today={today} chosen={date === day} onDay={onDay} /> : <span key={place} />)}
            </div>
          ))}
        </section>
      ))}
    </div>
  );
});

function Day({ date, day, today, chosen, onDay }: { date: string; day: Schemas["CalendarDay"] | undefined; today: string; chosen: boolean; onDay: (day: string) => void }) {
  const t = useText();
  const number = String(Number(date.slice(8)));
  if (!day) return <span className={styles.day} data-today={date === today || undefined}><span>{number}</span></span>;
  const runs = day.failed + day.running + day.queued + day.success;
  const words = [
    date,
    ...(["failed", "running", "queued", "success"] as const).filter((state) => day[state] > 0).map((state) => t("calendar.stateCount", { state: stateWord(state), count: day[state] })),
    day.planned ? t("calendar.planned", { count: day.planned }) : "",
  ].filter(Boolean).join(", ");
  return (
    <button type="button" className={styles.day} title={words} aria-label={words} aria-pressed={chosen} data-chosen={chosen || undefined} data-today={date === today || undefined} onClick={() => onDay(date)}>
      <span>{number}</span>
      {day.state ? <StateIcon state={day.state} decorative /> : <i className={styles.planned} aria-hidden />}
      {runs > 1 && <small className="figures" aria-hidden>{runs > 99 ? "99+" : runs}</small>}
    </button>
  );
}

/** The runs that were due on one day, and how many are planned. */
function DayRuns({ dagId, day, zone, known, onClose }: { dagId: string; day: string; zone: string; known: Schemas["CalendarDay"] | undefined; onClose: () => void }) {
  const t = useText();
  const set = useSetAddress();
  const query = useQuery(live(["dag", dagId, "runs-of-day", day, zone], [dagTopic(dagId)], (signal) =>
    read(api.GET("/api/v2/dags/{dag_id}/dagRuns", {
      params: { path: { dag_id: dagId }, query: { run_after_gte: dayStart(day, zone), run_after_lt: dayStart(addDays(day, 1), zone), order_by: ["run_after"], limit: RUNS_MAX } }, signal,
    }))));
  return (
    <aside className={styles.panel} aria-label={t("calendar.runsOf", { day })}>
      <header className={styles.panelHead}>
        <h2 className="grow figures">{day}</h2>
        <Button look="quiet" icon compact label={t("calendar.earlier")} onPress={() => set({ day: addDays(day, -1) })}>‹</Button>
        <Button look="quiet" icon compact label={t("calendar.later")} onPress={() => set({ day: addDays(day, 1) })}>›</Button>
        <Button look="quiet" icon compact label={t("common.close")} onPress={onClose}><X size={14} /></Button>
      </header>
      <div className={styles.panelBody}>
        <Loaded query={query} lines={3}>
          {(found) => (
            <>
              {found.dag_runs.length === 0 && <p className="muted">{t("calendar.noRuns")}</p>}
              <ul className={styles.runs}>
                {found.dag_runs.map((run) => (
                  <li key={run.dag_run_id}>
                    <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId: run.dag_run_id }} className={styles.run}>
                      <span className="row"><StateChip state={run.state} /><span className="muted small">{runTypeWord(run.run_type)}</span><span className="grow" /><DurationText start={run.start_date} end={run.end_date} /></span>
                      <span className="mono cut muted" title={run.dag_run_id}>{run.dag_run_id}</span>
                      <span className="small"><TimeText at={run.run_after} zoned /></span>
                    </Link>
                  </li>
                ))}
              </ul>
              {(found.total_entries ?? 0) > found.dag_runs.length && <p className="muted small">{t("calendar.more", { count: (found.total_entries ?? 0) - found.dag_runs.length })}</p>}
            </>
          )}
        </Loaded>
        {known && known.planned > 0 && <p className="row"><i className={styles.planned} aria-hidden /> {t("calendar.planned", { count: known.planned })}</p>}
      </div>
    </aside>
  );
}
