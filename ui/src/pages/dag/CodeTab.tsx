// The file of a DAG, with an import error on its line, and its earlier versions, if the bundle keeps them; or the definitions of two
// versions, compared.
import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { Copy, FileCode, RefreshCw } from "lucide-react";
import { useCallback, useMemo } from "react";

import { useAddress, useSetAddress } from "../../address";
import { api, ApiError, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { dagTopic, live } from "../../api/query";
import { useText } from "../../i18n";
import { storedText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { copyText, CopyAs } from "../../parts/CopyAs";
import { Select } from "../../parts/fields";
import { EmptyState, ErrorState, Loaded, Loading } from "../../parts/status";
import { toast, toastError } from "../../parts/toast";
import { structureQuery } from "../graph/queries";
import { CodeView } from "./CodeView";
import { definitionText } from "./definition";
import { headQuery } from "./query";
import styles from "./code.module.css";

const VERSIONS_MAX = 200;

export default function CodeTab() {
  const t = useText();
  const { dagId = "" } = useParams({ strict: false });
  const address = useAddress();
  const set = useSetAddress();
  const head = useQuery(headQuery(dagId));
  const latest = head.data?.details.latest_dag_version?.version_number ?? 0;
  const kept = useKeptSources(dagId, Boolean(head.data?.details.latest_dag_version?.bundle_version));
  const version = Math.min(Number(address.v) || 0, latest || Infinity);
  const source = version ? 0 : Math.min(Number(address.source) || 0, latest || Infinity);
  const against = Number(address.against) || 0;
  const numbers = Array.from({ length: Math.min(latest, VERSIONS_MAX) }, (_, at) => latest - at);
  const others = (version ? numbers : kept).filter((one) => one !== (version || source));

  /** `s3`: the source of version 3; `3`: the definition of version 3; empty: the file as it is. */
  function show(value: string): void {
    const number = Number(value.replace("s", "")), known = value.startsWith("s") ? kept : numbers;
    const before = known.find((one) => one < number);
    set({ v: value.startsWith("s") ? "" : value, source: value.startsWith("s") ? String(number) : "", against: before ? String(before) : "", line: "" });
  }

  return (
    <div className={styles.page}>
      <div className={styles.toolbar}>
        <Select
          label={t("code.shown")} value={version ? String(version) : source ? `s${source}` : "file"}
          choices={[
            { value: "file", label: t("code.source") },
            ...kept.map((one) => ({ value: `s${one}`, label: t("code.sourceVersion", { version: one }) })),
            ...numbers.map((one) => ({ value: String(one), label: t("code.definition", { version: one }) })),
          ]}
          onChange={(value) => show(value === "file" ? "" : value)}
        />
        {(version > 0 || kept.length > 0) && (
          <Select
            label={t("code.against")} value={against ? String(against) : "none"}
            choices={[{ value: "none", label: t("code.alone") }, ...others.map((one) => ({ value: String(one), label: t("code.againstVersion", { version: one }) }))]}
            onChange={(value) => set({ against: value === "none" ? "" : value })}
          />
        )}
        {head.data && <File details={head.data.details} />}
      </div>
      {version > 0 ? <Definition dagId={dagId} version={version} against={against} />
        : source > 0 ? <SourceOfVersion key={`${source}-${against}`} dagId={dagId} version={source} against={against} />
        : <Source dagId={dagId} details={head.data?.details} against={against} />}
    </div>
  );
}

/** The versions whose source the bundle keeps, the newest first. */
function useKeptSources(dagId: string, versioned: boolean): number[] {
  const query = useQuery({
    ...live(["dag", dagId, "versions"], [dagTopic(dagId)], (signal) =>
      read(api.GET("/api/v2/dags/{dag_id}/dagVersions", { params: { path: { dag_id: dagId }, query: { limit: 100, order_by: ["-version_number"] } }, signal }))),
    enabled: versioned,
  });
  return useMemo(() => (query.data?.dag_versions ?? []).filter((one) => one.bundle_version).map((one) => one.version_number), [query.data]);
}

function File({ details }: { details: Schemas["DagDetailsView"] }) {
  const t = useText();
  const refused = useRefusal("edit:dag");
  const parse = useMutation({
    mutationFn: () => read(api.PUT("/api/v2/parseDagFile/{file_token}", { params: { path: { file_token: details.file_token } } })),
    onSuccess: () => toast(t("code.parsing")),
    onError: toastError,
  });
  return (
    <div className={styles.file}>
      <code className="mono cut" title={details.fileloc}>{details.relative_fileloc}</code>
      <Button look="quiet" icon compact label={t("code.copyPath")} onPress={() => void copyText(details.fileloc)}><Copy size={14} /></Button>
      <Button compact refused={refused} pending={parse.isPending} onPress={() => parse.mutate()}><RefreshCw size={14} aria-hidden /> {t("code.parse")}</Button>
      <CopyAs compact action={{ method: "PUT", path: `/api/v2/parseDagFile/${encodeURIComponent(details.file_token)}` }} />
    </div>
  );
}

function useLine(): [number | null, (line: number) => void] {
  const address = useAddress();
  const set = useSetAddress();
  const wanted = Number(address.line);
  const line = Number.isInteger(wanted) && wanted > 0 ? wanted : null;
  return [line, useCallback((one: number) => set({ line: one === line ? "" : String(one) }), [set, line])];
}

function Source({ dagId, details, against }: { dagId: string; details: Schemas["DagDetailsView"] | undefined; against: number }) {
  const t = useText();
  const [line, setLine] = useLine();
  const source = useQuery(live(["dag", dagId, "source"], [dagTopic(dagId)], (signal) => read(api.GET("/api/v2/dagSources/{dag_id}", { params: { path: { dag_id: dagId } }, signal }))));
  const former = useQuery({ ...sourceQuery(dagId, against), enabled: against > 0 });
  const broken = useQuery({
    ...live(["dag", dagId, "import-error", details?.relative_fileloc ?? ""], [dagTopic(dagId)], (signal) =>
      read(api.GET("/api/v2/importErrors", { params: { query: { limit: 100, filename_pattern: details?.relative_fileloc ?? "" } }, signal }))),
    enabled: details?.has_import_errors ?? false,
  });
  const error = details?.has_import_errors ? broken.data?.import_errors.find((one) => isOf(one, details)) : undefined;
  const place = error?.line ?? null, sentence = error?.message ?? "";
  const shown = useMemo(() => (place ? { line: place, text: sentence } : null), [place, sentence]);
  if (source.error instanceof ApiError && source.error.status === 404) {
    return <EmptyState icon={<FileCode size={28} />} title={t("code.missing")}><p className="wrap">{storedText(source.error.message)}</p></EmptyState>;
  }
  return (
    <>
      {error && (
        <div className={styles.problem} role="alert">
          <p><b>{t("code.broken")}</b> <span className="wrap">{sentence}</span>{place !== null && <> <button type="button" className={styles.jump} onClick={() => setLine(place)}>{t("code.line", { line: place })}</button></>}</p>
          <details><summary>{t("code.traceback")}</summary><pre className={styles.trace} tabIndex={0}>{error.stack_trace}</pre></details>
        </div>
      )}
      {former.error && against > 0 && <ErrorState error={former.error} retry={() => void former.refetch()} />}
      <div className={styles.main}>
        <Loaded query={source} lines={12}>
          {(found) => <CodeView text={textOf(found)} python original={against > 0 ? (former.data ?? null) : null} label={t("code.sourceOf", { dag: dagId })} line={line} error={shown} onLine={setLine} />}
        </Loaded>
      </div>
    </>
  );
}

/** The source of a version: it never changes. */
function sourceQuery(dagId: string, version: number) {
  return queryOptions({
    queryKey: ["dag-source", dagId, version], staleTime: Infinity,
    queryFn: async ({ signal }) => textOf(await read(api.GET("/api/v2/dagSources/{dag_id}", { params: { path: { dag_id: dagId }, query: { version_number: version } }, signal }))),
  });
}

function textOf(found: string | Schemas["DagSource"]): string {
  return typeof found === "string" ? found : (found.content ?? "");
}

function SourceOfVersion({ dagId, version, against }: { dagId: string; version: number; against: number }) {
  const t = useText();
  const [line, setLine] = useLine();
  const present = useQuery(sourceQuery(dagId, version));
  const former = useQuery({ ...sourceQuery(dagId, against), enabled: against > 0 });
  const error = present.error ?? (against > 0 ? former.error : null);
  if (error) return <ErrorState error={error} retry={() => void Promise.all([present.refetch(), former.refetch()])} />;
  if (present.data === undefined || (against > 0 && former.data === undefined)) return <Loading lines={12} />;
  const original = against > 0 ? (former.data ?? "") : null;
  return (
    <>
      {original === present.data && <p className={styles.notice}>{t("code.sameSource", { version, against })}</p>}
      <div className={styles.main}>
        <CodeView text={present.data} python original={original} label={t("code.sourceVersion", { version })} line={line} onLine={setLine} />
      </div>
    </>
  );
}

function isOf(error: Schemas["ImportErrorView"], details: Schemas["DagDetailsView"]): boolean {
  const name = error.filename;
  return name === details.fileloc || name === details.relative_fileloc || details.fileloc.endsWith(`/${name}`);
}

function Definition({ dagId, version, against }: { dagId: string; version: number; against: number }) {
  const t = useText();
  const [line, setLine] = useLine();
  const present = useQuery(structureQuery(dagId, version));
  const former = useQuery({ ...structureQuery(dagId, against), enabled: against > 0 });
  const text = useMemo(() => (present.data ? definitionText(present.data) : null), [present.data]);
  const original = useMemo(() => (against > 0 && former.data ? definitionText(former.data) : null), [against, former.data]);
  const error = present.error ?? (against > 0 ? former.error : null);
  if (error) return <ErrorState error={error} retry={() => void Promise.all([present.refetch(), former.refetch()])} />;
  if (text === null || (against > 0 && original === null)) return <Loading lines={12} />;
  return (
    <>
      <p className={styles.notice}>{original !== null && original === text ? t("code.same", { version, against }) : t("code.definitionOnly")}</p>
      <div className={styles.main}>
        <CodeView key={`${version}-${against}`} text={text} original={original} label={t("code.definition", { version })} line={line} onLine={setLine} />
      </div>
    </>
  );
}
