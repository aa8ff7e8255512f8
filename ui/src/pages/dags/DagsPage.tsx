// All DAGs: search, filters with counts, the last runs, the next one, pause and trigger.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FileWarning, Play, SearchX, Star, Workflow } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import { useAddress, useParam } from "../../address";
import type { Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc } from "../../api/query";
import { formatNumber, t, useText } from "../../i18n";
import { scheduleText } from "../../i18n/phrases";
import { Button } from "../../parts/Button";
import { copyText } from "../../parts/CopyAs";
import { Select, Switch } from "../../parts/fields";
import { FilterRow, FilterSelect, RemovableChip, SearchParam, Segments, ToggleParam, useListParam, useNarrow, usePhone } from "../../parts/filters";
import { Page } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { RunBars } from "../../parts/RunBars";
import { EmptyState, Loaded } from "../../parts/status";
import { To } from "../../parts/To";
import { toastError } from "../../parts/toast";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { usePageKeys, type PageKey } from "../../shell/keys";
import { StateIcon } from "../../state/StateIcon";
import { stateWord } from "../../state/states";
import { DueText } from "../../time/TimeText";
import { TriggerDialog } from "../actions/dialogs";
import styles from "./dags.module.css";
import { dagsQuery, setFavourite, setPaused } from "./query";

type Dag = Schemas["PageDag"];

const STATES = ["failed", "running", "queued", "success", "none"] as const;
const KEYS: readonly PageKey[] = [
  { key: "s", what: "dags.keyStar" },
  { key: "p", what: "dags.keyPause" },
  { key: "t", what: "dags.keyTrigger" },
];
const BARS = 14;
const PHONE_BARS = 8;

export default function DagsPage() {
  const t = useText();
  const address = useAddress();
  const [tags, setTags] = useListParam("tags");
  const [order, setOrder] = useParam("order", "name");
  const query = useInfiniteQuery(
    dagsQuery({
      search: address.q ?? "", tags, owner: address.owner ?? "", state: address.state ?? "", paused: address.paused ?? "",
      favourite: address.fav === "1", broken: address.broken === "1", order,
    }),
  );
  const [triggered, setTriggered] = useState<string | null>(null);
  const first = query.data?.pages.at(-1);
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.dags) ?? [], [query.data]);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  const refusal = useRefusal("create:run");
  usePageKeys(KEYS);
  const columns = useColumns(setTriggered, (tag) => !tags.includes(tag) && setTags([...tags, tag]));

  return (
    <Page
      title={t("dags.title")} fill
      facts={first ? (
        <>
          <span className="figures">
            {first.total === first.all_dags
              ? t("dags.count", { count: first.total, shown: formatNumber(first.total) })
              : t("dags.countOf", { shown: formatNumber(first.total), total: formatNumber(first.all_dags) })}
          </span>
          {first.broken_files > 0 && (
            <Link className={`${styles.broken} danger`} to="/admin/$section" params={{ section: "import-errors" }}>
              <FileWarning size={14} aria-hidden /> {t("dags.broken", { count: first.broken_files })}
            </Link>
          )}
        </>
      ) : <span>&nbsp;</span>}
      toolbar={<Filters counts={first?.counts} tags={tags} setTags={setTags} />}
    >
      <div className={styles.list}>
        <Loaded query={query} lines={14}>
          {() =>
            rows.length === 0 ? (
              <None filtered={(first?.all_dags ?? 0) > 0} />
            ) : (
              <VirtualTable
                label={t("dags.table")} rows={rows} columns={columns} rowKey={(dag) => dag.dag_id} href={(dag) => `/dags/${enc(dag.dag_id)}`}
                order={order} onOrder={setOrder} onEnd={onEnd} rowHeight={44}
                onKey={(key, dag) => {
                  if (key === "s") void setFavourite(dag.dag_id, !dag.is_favourite).catch(toastError);
                  if (key === "p") void setPaused(dag.dag_id, !dag.is_paused).catch(toastError);
                  if (key === "t" && !refusal) setTriggered(dag.dag_id);
                }}
              />
            )
          }
        </Loaded>
      </div>
      {triggered !== null && <TriggerDialog dagId={triggered} onClose={() => setTriggered(null)} />}
    </Page>
  );
}

function Filters({ counts, tags, setTags }: { counts: Schemas["DagCounts"] | undefined; tags: readonly string[]; setTags: (tags: readonly string[]) => void }) {
  const t = useText();
  const { broken } = useAddress();
  const owners = Object.entries(counts?.owners ?? {}).map(([value, count]) => ({ value, label: value, count }));
  const left = Object.entries(counts?.tags ?? {}).filter(([tag]) => !tags.includes(tag)).map(([value, count]) => ({ value, label: value, count }));
  const states = STATES.map((value) => ({
    value, label: value === "none" ? t("dags.stateNone") : stateWord(value), icon: <StateIcon state={value} decorative />, count: counts?.last_state[value] ?? 0,
  }));
  const all = counts ? counts.paused + counts.unpaused : undefined;
  return (
    <>
      <SearchParam name="q" label={t("dags.search")} width={240} />
      <FilterRow>
        <Segments
          name="paused" label={t("dags.pausedFilter")}
          choices={[
            { value: "", label: t("dags.all"), count: all },
            { value: "0", label: t("dags.active"), count: counts?.unpaused },
            { value: "1", label: t("dags.paused"), count: counts?.paused },
          ]}
        />
        <FilterSelect name="state" label={t("dags.state")} choices={states} />
        <FilterSelect name="owner" label={t("dags.owner")} choices={owners} />
        <Select
          label={t("dags.addTag")} value="" onChange={(tag) => tag && tag !== "\n" && setTags([...tags, tag])}
          choices={[{ value: "", label: t("dags.tags") }, ...left]}
        />
        {tags.map((tag) => (
          <RemovableChip key={tag} label={t("dags.removeTag", { tag })} onRemove={() => setTags(tags.filter((one) => one !== tag))}>{tag}</RemovableChip>
        ))}
        <ToggleParam name="fav" count={counts?.favourites}>
          <Star size={14} aria-hidden /> {t("dags.favourites")}
        </ToggleParam>
        {((counts?.import_errors ?? 0) > 0 || broken === "1") && (
          <ToggleParam name="broken" count={counts?.import_errors}>
            <FileWarning size={14} aria-hidden /> {t("dags.brokenDags")}
          </ToggleParam>
        )}
      </FilterRow>
    </>
  );
}

function useColumns(trigger: (dag: string) => void, addTag: (tag: string) => void): readonly Column<Dag>[] {
  const t = useText();
  const phone = usePhone();
  const narrow = useNarrow();
  const canRun = useRefusal("create:run");
  const canEdit = useRefusal("edit:dag");
  return useMemo(() => {
    const star: Column<Dag> = { id: "star", title: "", width: "28px", open: true, render: (dag) => <Favourite dag={dag} /> };
    const name: Column<Dag> = {
      id: "name", title: t("dags.name"), sort: "name", width: narrow ? "minmax(140px, 2fr)" : "minmax(220px, 1.6fr)",
      render: (dag) => <Name dag={dag} addTag={addTag} tagged={!phone} />,
    };
    const schedule: Column<Dag> = {
      id: "schedule", title: t("dags.schedule"), width: "minmax(168px, 1fr)",
      render: (dag) => <span className="muted" title={scheduleText(dag) ?? ""}>{scheduleText(dag) ?? t("dags.noSchedule")}</span>,
    };
    const bars: Column<Dag> = {
      id: "bars", title: t("dags.lastRuns"), sort: "last_run", width: `${(phone ? PHONE_BARS : BARS) * 9}px`, right: true,
      render: (dag) => <RunBars dagId={dag.dag_id} runs={dag.last_runs} count={phone ? PHONE_BARS : BARS} />,
    };
    const counts: Column<Dag> = { id: "counts", title: t("dags.runs"), sort: "state", width: "132px", render: (dag) => <Counts dag={dag} /> };
    const next: Column<Dag> = {
      id: "next", title: t("dags.next"), sort: "next_run", width: "92px", right: true,
      render: (dag) => (dag.is_paused ? <span className="muted">–</span> : <DueText at={dag.next_run} />),
    };
    const paused: Column<Dag> = {
      id: "active", title: <span className="hidden">{t("dags.active")}</span>, width: "32px", open: true,
      render: (dag) => (
        <span title={canEdit} className={styles.switch}>
          <Switch
            label={t("dags.activeSwitch", { name: dag.dag_id })} selected={!dag.is_paused} disabled={canEdit !== undefined}
            onChange={(active) => void setPaused(dag.dag_id, !active).catch(toastError)}
          />
        </span>
      ),
    };
    const run: Column<Dag> = {
      id: "trigger", title: <span className="hidden">{t("dags.triggerTitle")}</span>, width: "28px", open: true,
      render: (dag) => (
        <Button look="quiet" icon compact label={t("dags.trigger", { name: dag.dag_id })} refused={canRun} onPress={() => trigger(dag.dag_id)}>
          <Play size={14} />
        </Button>
      ),
    };
    if (phone) return [name, bars, paused];
    return narrow ? [star, name, bars, counts, next, paused, run] : [star, name, schedule, bars, counts, next, paused, run];
  }, [t, phone, narrow, canRun, canEdit, trigger, addTag]);
}

function Favourite({ dag }: { dag: Dag }) {
  return (
    <Button
      look="quiet" icon compact label={t(dag.is_favourite ? "dags.unfavourite" : "dags.favourite", { name: dag.dag_id })}
      onPress={() => void setFavourite(dag.dag_id, !dag.is_favourite).catch(toastError)}
    >
      <Star size={15} className={dag.is_favourite ? styles.starred : styles.star} />
    </Button>
  );
}

function Name({ dag, addTag, tagged }: { dag: Dag; addTag: (tag: string) => void; tagged: boolean }) {
  return (
    <span className={styles.name} data-paused={dag.is_paused || undefined}>
      <Link className="cut" to="/dags/$dagId" params={{ dagId: dag.dag_id }} title={dag.description ? `${dag.dag_id}\n${dag.description}` : dag.dag_id}>
        {dag.display_name}
      </Link>
      {dag.has_import_error && <FileWarning size={14} className="danger" aria-label={t("dags.importError")} />}
      {tagged && (
        <span className={styles.tags}>
          {dag.tags.map((tag) => (
            <button key={tag} type="button" className={styles.tag} title={t("dags.onlyTag", { tag })} onClick={() => addTag(tag)}>{tag}</button>
          ))}
        </span>
      )}
    </span>
  );
}

/** How many runs are failed, running and queued: each number leads to these runs. */
function Counts({ dag }: { dag: Dag }) {
  const runs = `/dags/${enc(dag.dag_id)}/runs`;
  const shown = [
    ["failed", dag.failed, "dags.failedRuns"],
    ["running", dag.running, "dags.runningRuns"],
    ["queued", dag.queued, "dags.queuedRuns"],
  ] as const;
  return (
    <span className={styles.counts}>
      {shown.map(([state, count, text]) => count > 0 && (
        <To key={state} href={`${runs}?state=${state}`} title={t(text, { count })} label={t(text, { count })}>
          <StateIcon state={state} size={14} decorative /> {formatNumber(count)}
        </To>
      ))}
    </span>
  );
}

const EXAMPLE = `from airflow.sdk import dag, task


@dag(schedule="@daily")
def hello():
    @task
    def greet():
        print("hello")

    greet()


hello()
`;

function None({ filtered }: { filtered: boolean }) {
  useText();
  if (filtered) {
    return (
      <EmptyState icon={<SearchX size={28} aria-hidden />} title={t("dags.noneMatch")}>
        <p>{t("dags.noneMatchText")}</p>
        <To href="/dags">{t("common.clearFilters")}</To>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={<Workflow size={28} aria-hidden />} title={t("dags.empty")}>
      <p>{t("dags.emptyText")}</p>
      <pre className={parts.code}>{EXAMPLE}</pre>
      <Button onPress={() => void copyText(EXAMPLE)}>{t("dags.copyExample")}</Button>
      <p className="small">{t("dags.emptyFolder")}</p>
    </EmptyState>
  );
}
