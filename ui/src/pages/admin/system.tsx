// The parts of the installation: services, settings, plugins, provider packages, and files that cannot be imported.
import { Blocks, CircleAlert, CircleCheck, CircleDashed, FileCheck2, Package, Server, Settings2 } from "lucide-react";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useMemo } from "react";

import { useAddress } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { PAGE_SIZE, UNNAMED_MS } from "../../api/pages";
import { tOr, useText } from "../../i18n";
import { SideSheet } from "../../parts/Dialog";
import { ToggleParam, usePhone } from "../../parts/filters";
import { MiddleCut } from "../../parts/MiddleCut";
import parts from "../../parts/parts.module.css";
import { To } from "../../parts/To";
import type { Column } from "../../parts/VirtualTable";
import { triageQuery } from "../triage/query";
import { AgoText, TimeText } from "../../time/TimeText";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { lastLine, sourceLine, tracebackLines } from "./traceback";

type ImportError = Schemas["ImportErrorView"];
type Job = Schemas["JobView"];

async function loadErrors(signal: AbortSignal, offset: number) {
  const found = await read(api.GET("/api/v2/importErrors", { signal, params: { query: { limit: PAGE_SIZE, offset } } }));
  return { rows: found.import_errors, total: found.total_entries };
}

export function ImportErrorsSection() {
  const t = useText();
  const phone = usePhone();
  const columns = useMemo<Column<ImportError>[]>(() => [
    { id: "file", title: t("admin.file"), width: "minmax(120px, 0.8fr)", render: (one) => <b title={one.filename}>{one.filename}</b> },
    ...(phone ? [] : [{ id: "line", title: t("admin.line"), width: "56px", right: true, render: (one: ImportError) => one.line }]),
    { id: "problem", title: t("admin.problem"), width: "minmax(160px, 2fr)", render: (one) => <code className="mono danger" title={one.message}>{one.message}</code> },
    ...(phone ? [] : [{ id: "since", title: t("admin.since"), width: "110px", right: true, render: (one: ImportError) => <span className="muted"><AgoText at={one.timestamp} /></span> }]),
  ], [t, phone]);
  return (
    <AdminList
      name="import-errors" everyMs={UNNAMED_MS} load={loadErrors} label={t("admin.importErrors")} columns={columns} rowKey={errorKeyOf} text={errorTextOf}
      sheet={(one, onClose) => one && <ImportErrorSheet error={one} onClose={onClose} />}
      empty={{ icon: <FileCheck2 size={28} aria-hidden />, title: t("admin.emptyImportErrors"), text: t("admin.emptyImportErrorsText"), code: "tradewind dags list-import-errors" }}
    />
  );
}

function ImportErrorSheet({ error, onClose }: { error: ImportError; onClose: () => void }) {
  const t = useText();
  const lines = tracebackLines(error.stack_trace, error.filename);
  const source = sourceLine(lines);
  return (
    <SideSheet title={error.filename} onClose={onClose}>
      <p className="danger wrap"><b>{error.message}</b></p>
      {source && (
        <figure className={styles.source}>
          <figcaption className="muted small">{error.line === null ? error.filename : t("admin.lineOf", { line: error.line })}</figcaption>
          <pre className={parts.code}>{source}</pre>
        </figure>
      )}
      <dl className={parts.definition}>
        {error.line !== null && !source && <><dt>{t("admin.line")}</dt><dd>{error.line}</dd></>}
        <dt>{t("admin.since")}</dt><dd><TimeText at={error.timestamp} zoned /></dd>
      </dl>
      <div className={styles.trace}>
        <h3>{t("admin.traceback")}</h3>
        <pre className={parts.code}>{lines.map((one, at) => <span key={at} data-own={one.own || undefined}>{one.text}{"\n"}</span>)}</pre>
      </div>
      <To href="/dags?broken=1">{t("admin.affectedDags")}</To>
    </SideSheet>
  );
}

const errorKeyOf = (one: ImportError): string => String(one.import_error_id);

function errorTextOf(one: ImportError): string {
  return `${one.filename} ${one.message}`;
}

async function loadJobs(signal: AbortSignal, offset: number) {
  const found = await read(api.GET("/api/v2/jobs", { signal, params: { query: { limit: PAGE_SIZE, offset, order_by: ["-start_date"] } } }));
  return { rows: found.jobs, total: found.total_entries };
}

export function JobsSection() {
  const t = useText();
  const phone = usePhone();
  const { alive } = useAddress();
  const columns = useMemo<Column<Job>[]>(() => {
    const found: Column<Job>[] = [
      { id: "type", title: t("admin.jobType"), width: phone ? "minmax(96px, 1fr)" : "minmax(132px, 1fr)", render: (one) => <b>{one.job_type.replace(/Job$/, "")}</b> },
      {
        id: "state", title: t("admin.state"), width: "96px",
        render: (one) => <span className={styles.alive} data-state={one.state}><i aria-hidden /> {tOr(`admin.job_${one.state}`, one.state)}</span>,
      },
      { id: "heartbeat", title: t("admin.heartbeat"), width: phone ? "100px" : "116px", render: (one) => <AgoText at={one.latest_heartbeat} /> },
    ];
    if (!phone) {
      found.splice(2, 0, { id: "host", title: t("admin.host"), width: "minmax(80px, 1fr)", render: (one) => <span title={one.hostname}>{one.hostname}</span> });
      found.splice(3, 0, { id: "pid", title: t("admin.processId"), width: "72px", right: true, render: (one) => one.pid });
      found.push({ id: "started", title: t("admin.started"), width: "148px", render: (one) => <span className="muted"><TimeText at={one.start_date} /></span> });
      found.push({ id: "reason", title: t("admin.reason"), width: "minmax(80px, 1fr)", render: (one) => <span className="danger" title={one.reason ?? ""}>{one.reason}</span> });
    }
    return found;
  }, [t, phone]);
  return (
    <AdminList
      name="jobs" everyMs={UNNAMED_MS} load={loadJobs} label={t("admin.jobs")} columns={columns} rowKey={jobKeyOf} text={jobText} above={<HealthCards />}
      filters={<ToggleParam name="alive">{t("admin.onlyRunning")}</ToggleParam>} {...(alive ? { keep: isAlive } : {})}
      empty={{ icon: <Server size={28} aria-hidden />, title: t("admin.emptyJobs"), text: t("admin.emptyJobsText") }}
    />
  );
}

const COMPONENTS = ["scheduler", "dag_processor", "worker_host", "triggerer", "database"] as const;

/** The health of each component, with the message of the server if a component is unhealthy. */
function HealthCards() {
  const t = useText();
  const health = useQuery(triageQuery).data?.health;
  return (
    <ul className={styles.cards} aria-label={t("admin.health")}>
      {COMPONENTS.map((name) => {
        const part = health?.[name];
        const ill = part?.status === "unhealthy";
        return (
          <li key={name} data-ill={ill || undefined}>
            <b>{t(`admin.part_${name}`)}</b>
            <span>
              {ill ? <CircleAlert size={14} aria-hidden /> : part?.status === "healthy" ? <CircleCheck size={14} aria-hidden /> : <CircleDashed size={14} aria-hidden />}
              {t(ill ? "admin.unhealthy" : part?.status === "healthy" ? "admin.healthy" : "admin.notHere")}
              {name === "worker_host" && health && health.workers > 0 && <span className="muted figures">{t("admin.workers", { count: health.workers })}</span>}
            </span>
            {ill && part.problem && <span className="wrap">{part.problem}</span>}
          </li>
        );
      })}
    </ul>
  );
}

const jobKeyOf = (one: Job): string => String(one.id);
const isAlive = (one: Job): boolean => one.state === "running";
const jobText = (one: Job): string => `${one.job_type} ${one.hostname} ${one.pid} ${one.state}`;

interface Setting {
  section: string;
  option: string;
  value: string;
}

async function loadConfig(signal: AbortSignal) {
  const found = await read(api.GET("/api/v2/config", { signal, headers: { Accept: "application/json" } }));
  // A text is the answer for other values of Accept.
  if (typeof found === "string") return { rows: [], total: 0 };
  const rows = found.sections.flatMap((part) => part.options.map((one): Setting => ({ section: part.name, option: one.key, value: one.value })));
  return { rows, total: rows.length };
}

export function ConfigSection() {
  const t = useText();
  const phone = usePhone();
  const columns = useMemo<Column<Setting>[]>(() => {
    const section: Column<Setting> = { id: "section", title: t("admin.section"), width: "minmax(80px, 140px)", render: (one) => <span className="muted">{one.section}</span> };
    const option: Column<Setting> = {
      id: "option", title: t("admin.option"), width: phone ? "minmax(0, 1.6fr)" : "minmax(120px, 1fr)",
      render: (one) => <b title={`${one.section}.${one.option}`}><MiddleCut text={one.option} /></b>,
    };
    const value: Column<Setting> = { id: "value", title: t("admin.value"), width: phone ? "minmax(0, 1fr)" : "minmax(100px, 1.4fr)", render: (one) => <code className="mono" title={one.value}>{one.value}</code> };
    return phone ? [option, value] : [section, option, value];
  }, [t, phone]);
  return (
    <AdminList
      name="config" load={loadConfig} label={t("admin.config")} columns={columns} rowKey={settingKeyOf} text={settingText}
      empty={{ icon: <Settings2 size={28} aria-hidden />, title: t("admin.emptyConfig"), text: t("admin.emptyConfigText"), code: "tradewind config list" }}
    />
  );
}

const settingKeyOf = (one: Setting): string => `${one.section}.${one.option}`;
const settingText = (one: Setting): string => `${one.section}.${one.option} ${one.value}`;

interface Plugin {
  name: string;
  source: string;
  /** The contents of the plugin: kind → names. */
  parts: readonly (readonly [string, string])[];
  error: string;
}

/** A part of a plugin: its name, if it has one. */
function wordOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null && "name" in value && typeof value.name === "string") return value.name;
  return JSON.stringify(value);
}

const contentsOf = (one: Plugin): string => one.parts.map(([kind, names]) => `${kind}: ${names}`).join(" · ");

/** An installation has few plugins: one page has them all. */
async function loadPlugins(signal: AbortSignal) {
  const [found, broken] = await Promise.all([
    read(api.GET("/api/v2/plugins", { signal, params: { query: { limit: PAGE_SIZE } } })),
    read(api.GET("/api/v2/plugins/importErrors", { signal })),
  ]);
  const loaded = found.plugins.map((one): Plugin => ({
    name: one.name, source: one.source, error: "",
    parts: Object.entries(one).flatMap(([kind, value]) => (Array.isArray(value) && value.length ? [[kind, value.map(wordOf).join(", ")] as const] : [])),
  }));
  const failed = broken.import_errors.map((one): Plugin => ({ name: "", source: one.source, error: one.error, parts: [] }));
  return { rows: [...failed, ...loaded], total: failed.length + loaded.length };
}

export function PluginsSection() {
  const t = useText();
  const phone = usePhone();
  const columns = useMemo<Column<Plugin>[]>(() => [
    { id: "name", title: t("admin.name"), width: "minmax(120px, 1fr)", render: (one) => (one.error ? <span className="danger">{t("admin.pluginFailed")}</span> : <b title={one.name}>{one.name}</b>) },
    ...(phone ? [] : [{ id: "source", title: t("admin.source"), width: "minmax(100px, 1fr)", render: (one: Plugin) => <span className="muted" title={one.source}>{one.source}</span> }]),
    { id: "contents", title: t("admin.contents"), width: "minmax(120px, 2fr)", render: (one) => (one.error ? <code className="mono danger" title={one.error}>{lastLine(one.error)}</code> : <span title={contentsOf(one)}>{contentsOf(one)}</span>) },
  ], [t, phone]);
  return (
    <AdminList
      name="plugins" load={loadPlugins} label={t("admin.plugins")} columns={columns} rowKey={pluginKeyOf} text={pluginText}
      sheet={(one, onClose) => one && <PluginSheet plugin={one} onClose={onClose} />}
      empty={{ icon: <Blocks size={28} aria-hidden />, title: t("admin.emptyPlugins"), text: t("admin.emptyPluginsText"), code: "tradewind config get-value core plugins_folder" }}
    />
  );
}

function PluginSheet({ plugin, onClose }: { plugin: Plugin; onClose: () => void }) {
  const t = useText();
  return (
    <SideSheet title={plugin.name || t("admin.pluginFailed")} onClose={onClose}>
      <dl className={parts.definition}>
        <dt>{t("admin.source")}</dt><dd>{plugin.source}</dd>
        {plugin.parts.map(([kind, names]) => <Fragment key={kind}><dt>{kind}</dt><dd>{names}</dd></Fragment>)}
      </dl>
      {plugin.error && <div className={styles.trace}><h3>{t("admin.traceback")}</h3><pre className={parts.code}>{plugin.error.trimEnd()}</pre></div>}
    </SideSheet>
  );
}

const pluginKeyOf = (one: Plugin): string => `${one.name} ${one.source}`;
const pluginText = (one: Plugin): string => `${one.name} ${one.source} ${contentsOf(one)} ${one.error}`;

type Provider = Schemas["ProviderView"];

async function loadProviders(signal: AbortSignal, offset: number) {
  const found = await read(api.GET("/api/v2/providers", { signal, params: { query: { limit: PAGE_SIZE, offset } } }));
  return { rows: found.providers, total: found.total_entries };
}

export function ProvidersSection() {
  const t = useText();
  const phone = usePhone();
  const columns = useMemo<Column<Provider>[]>(() => [
    {
      id: "name", title: t("admin.package"), width: phone ? "minmax(0, 1fr)" : "minmax(280px, 1fr)",
      render: (one) => (isWebAddress(one.documentation_url)
        ? <a href={one.documentation_url} target="_blank" rel="noreferrer">{one.package_name}</a> : <b title={one.package_name}>{one.package_name}</b>),
    },
    { id: "version", title: t("admin.version"), width: phone ? "64px" : "96px", render: (one) => <span className="figures">{one.version}</span> },
    ...(phone ? [] : [{ id: "description", title: t("admin.description"), width: "minmax(120px, 2fr)", render: (one: Provider) => <span className="muted" title={one.description}>{one.description}</span> }]),
  ], [t, phone]);
  return (
    <AdminList
      name="providers" load={loadProviders} label={t("admin.providers")} columns={columns} rowKey={providerKeyOf} text={providerText}
      empty={{ icon: <Package size={28} aria-hidden />, title: t("admin.emptyProviders"), text: t("admin.emptyProvidersText"), code: "tradewind providers install postgres" }}
    />
  );
}

/** A package could name `javascript:…` as its documentation. */
function isWebAddress(url: string | null): url is string {
  return url !== null && /^https?:\/\//.test(url);
}

const providerKeyOf = (one: Provider): string => one.package_name;
const providerText = (one: Provider): string => `${one.package_name} ${one.version} ${one.description}`;
