// The details of a DAG: schedule, dates, limits, people, file, params and documentation.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { Fragment, useState, type ReactNode } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { formatNumber, useText } from "../../i18n";
import { scheduleText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { CopyAs, commandLine } from "../../parts/CopyAs";
import parts from "../../parts/parts.module.css";
import { Loaded } from "../../parts/status";
import { isoSeconds } from "../../time/format";
import { AgoText, DurationText, TimeText } from "../../time/TimeText";
import { RemoveDialog } from "../admin/sheets";
import { Awaited } from "../assets/Awaited";
import { DocText } from "./DocText";
import { headQuery } from "./query";
import styles from "./details.module.css";

type Details = Schemas["DagDetailsView"];
type Fact = readonly [name: string, value: ReactNode];

export default function DetailsTab() {
  const { dagId = "" } = useParams({ strict: false });
  const head = useQuery(headQuery(dagId));
  return (
    <div className={styles.page}>
      <Loaded query={head}>{(found) => <All head={found} />}</Loaded>
    </div>
  );
}

function All({ head }: { head: Schemas["PageDagHead"] }) {
  const { details } = head;
  const t = useText();
  const yes = (value: boolean | null | undefined): ReactNode => (value === null || value === undefined ? null : t(value ? "common.yes" : "common.no"));
  const params = Object.entries(details.params ?? {});
  const defaults = Object.entries(details.default_args ?? {});
  return (
    <div className={styles.columns}>
      <div className={styles.column}>
        {details.doc_md && <Part title={t("details.docs")}><DocText text={details.doc_md} /></Part>}
        <Part title={t("details.schedule")}>
          <Facts facts={[
            [t("details.timetable"), scheduleText(head) ?? details.timetable_description],
            [t("details.written"), details.timetable_summary && <code className="mono">{details.timetable_summary}</code>],
            [t("details.timezone"), details.timezone],
            [t("details.next"), details.next_dagrun_run_after && <><TimeText at={details.next_dagrun_run_after} zoned /> <span className="muted">· <AgoText at={details.next_dagrun_run_after} /></span></>],
            [t("details.interval"), details.next_dagrun_data_interval_start && <Interval from={details.next_dagrun_data_interval_start} to={details.next_dagrun_data_interval_end} />],
            [t("details.start"), details.start_date && <TimeText at={details.start_date} zoned />],
            [t("details.end"), details.end_date && <TimeText at={details.end_date} zoned />],
            [t("details.catchup"), yes(details.catchup)],
          ]} />
        </Part>
        <Part title={t("details.limits")}>
          <Facts facts={[
            [t("details.maxRuns"), <Link key="runs" to="/dags/$dagId/runs" params={{ dagId: details.dag_id }} search={{ state: "running" }} className="figures">{t("details.ofMost", { used: details.active_runs_count, most: formatNumber(details.max_active_runs ?? 0) })}</Link>],
            [t("details.maxTasks"), <span key="tasks" className="figures">{formatNumber(details.max_active_tasks)}</span>],
            [t("details.maxFailures"), details.max_consecutive_failed_dag_runs ? <span className="figures">{formatNumber(details.max_consecutive_failed_dag_runs)}</span> : t("details.noLimit")],
            [t("details.timeout"), details.dag_run_timeout ? <Timeout value={details.dag_run_timeout} /> : t("details.noLimit")],
          ]} />
        </Part>
        <Part title={t("details.params")}>
          {params.length === 0 ? <p className="muted">{t("details.noParams")}</p> : <Params params={params} />}
        </Part>
      </div>
      <div className={styles.column}>
        <Part title={t("details.dag")}>
          <Facts facts={[
            ["ID", <code key="id" className="mono wrap">{details.dag_id}</code>],
            [t("details.description"), details.description],
            [t("details.owners"), <span key="owners" className={styles.chips}>{details.owners.map((one) => <Owner key={one} name={one} link={details.owner_links?.[one]} />)}</span>],
            [t("details.tags"), details.tags.length ? <span className={styles.chips}>{details.tags.map((one) => <Link key={one.name} to="/dags" search={{ tags: one.name }} className={styles.chip}>{one.name}</Link>)}</span> : null],
            [t("details.pausedFirst"), yes(details.is_paused_upon_creation)],
            [t("details.native"), yes(details.render_template_as_native_obj)],
          ]} />
        </Part>
        <Part title={t("details.file")} more={<CopyAs compact action={{ command: commandLine("tradewind", "dags", "reserialize"), method: "PUT", path: `/api/v2/parseDagFile/${encodeURIComponent(details.file_token)}` }} />}>
          <Facts facts={[
            [t("details.path"), <Link key="path" to="/dags/$dagId/code" params={{ dagId: details.dag_id }} className="mono wrap">{details.fileloc}</Link>],
            [t("details.bundle"), details.bundle_name && <code className="mono wrap">{details.bundle_name}</code>],
            [t("details.bundleVersion"), details.bundle_version && <code className="mono wrap">{details.bundle_version}</code>],
            [t("details.version"), details.latest_dag_version && <><span className="figures">{details.latest_dag_version.version_number}</span> <span className="muted">{t("details.since")} <TimeText at={details.latest_dag_version.created_at} precision="minute" zoned /></span></>],
            [t("details.parsed"), details.last_parsed_time && <><TimeText at={details.last_parsed_time} zoned /> <span className="muted">· <AgoText at={details.last_parsed_time} /></span></>],
            [t("details.parseDuration"), details.last_parse_duration !== null && <DurationText seconds={details.last_parse_duration} />],
            [t("details.importError"), details.has_import_errors ? <Link to="/dags/$dagId/code" params={{ dagId: details.dag_id }} className="danger">{t("common.yes")}</Link> : t("common.no")],
          ]} />
        </Part>
        {defaults.length > 0 && (
          <Part title={t("details.defaults")}>
            <Facts facts={defaults.map(([name, value]): Fact => [name, <code key={name} className="mono wrap">{shown(value)}</code>])} />
          </Part>
        )}
        {details.asset_expression && (
          <Part title={t("details.assets")}>
            <Awaited dagId={details.dag_id} />
            <details className={styles.condition}><summary>{t("details.condition")}</summary><pre className={parts.code}>{JSON.stringify(details.asset_expression, null, 2)}</pre></details>
          </Part>
        )}
        <Deleting details={details} />
      </div>
    </div>
  );
}

function Deleting({ details }: { details: Details }) {
  const t = useText();
  const navigate = useNavigate();
  const refusal = useRefusal("edit:dag");
  const [asked, setAsked] = useState(false);
  const { dag_id: dagId } = details;
  return (
    <Part title={t("details.delete")}>
      <p className="muted">{t("details.deleteText")}</p>
      <span><Button look="danger" refused={refusal} onPress={() => setAsked(true)}><Trash2 size={14} aria-hidden /> {t("details.deleteDag")}</Button></span>
      {asked && (
        <RemoveDialog
          name="dags" title={t("details.deleteTitle", { dag: dagId })} text={t("details.deleteText")} doneText={t("details.deleted", { dag: dagId })}
          remove={() => read(api.DELETE("/api/v2/dags/{dag_id}", { params: { path: { dag_id: dagId } } }))}
          copy={{ command: commandLine("tradewind", "dags", "delete", dagId), method: "DELETE", path: `/api/v2/dags/${encodeURIComponent(dagId)}` }}
          onClose={(removed) => {
            setAsked(false);
            if (removed) void navigate({ to: "/dags" });
          }}
        />
      )}
    </Part>
  );
}

function Part({ title, more, children }: { title: string; more?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.part} aria-label={title}>
      <header className="row"><h2 className="grow">{title}</h2>{more}</header>
      {children}
    </section>
  );
}

/** Names and values; those without a value are left out. */
function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (value === null || value === undefined || value === "" || value === false ? null : (
        <Fragment key={name}>
          <dt title={name}>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      )))}
    </dl>
  );
}

function Interval({ from, to }: { from: string; to: string | null | undefined }) {
  if (!to || from === to) return <TimeText at={from} zoned />;
  return <><TimeText at={from} precision="minute" /> – <TimeText at={to} precision="minute" zoned /></>;
}

/** The author may write any address. Only web and mail addresses become links. */
function Owner({ name, link }: { name: string; link: string | undefined }) {
  const safe = link && /^(https?:\/\/|mailto:)/i.test(link);
  return safe ? <a href={link} target="_blank" rel="noreferrer" className={styles.chip}>{name}</a> : <Link to="/dags" search={{ owner: name }} className={styles.chip}>{name}</Link>;
}

/** A duration as the API writes it: seconds, or ISO 8601. */
function Timeout({ value }: { value: unknown }) {
  const seconds = typeof value === "string" ? isoSeconds(value) : value;
  if (typeof seconds === "number") return <DurationText seconds={seconds} />;
  return <code className="mono">{shown(value)}</code>;
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface Param {
  value?: unknown;
  description?: string | null;
  schema?: { type?: unknown; enum?: unknown; minimum?: unknown; maximum?: unknown };
}

function Params({ params }: { params: readonly [string, unknown][] }) {
  const t = useText();
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead><tr><th scope="col">{t("details.param")}</th><th scope="col">{t("details.default")}</th><th scope="col">{t("details.type")}</th></tr></thead>
        <tbody>
          {params.map(([name, found]) => {
            const param = (typeof found === "object" && found !== null && "schema" in found ? found : { value: found }) as Param;
            const kinds = Array.isArray(param.schema?.type) ? param.schema.type.map(shown).join(" | ") : param.schema?.type ? shown(param.schema.type) : "";
            const choices = Array.isArray(param.schema?.enum) ? param.schema.enum.map(shown).join(" | ") : "";
            return (
              <tr key={name}>
                <th scope="row"><code className="mono wrap">{name}</code>{param.description && <p className="muted small wrap">{param.description}</p>}</th>
                <td><code className="mono wrap">{param.value === null || param.value === undefined ? <span className="muted">null</span> : shown(param.value)}</code></td>
                <td className="muted wrap">{choices || kinds || "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
