// A backfill: dates and options, then the runs that it would create, run again or skip, then a button with their number.
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { api, ApiError, read, type Schemas } from "../../api/client";
import { formatNumber, tOr, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Dialog } from "../../parts/Dialog";
import { Checkbox, Select, TextField } from "../../parts/fields";
import { ErrorState, Loading, Notice } from "../../parts/status";
import { toast } from "../../parts/toast";
import { TimeText } from "../../time/TimeText";
import styles from "./actions.module.css";
import type { DialogProps } from "./props";

const DAY_MS = 86_400_000;
const BEHAVIOURS = ["none", "failed", "completed"] as const;
type Behaviour = (typeof BEHAVIOURS)[number];

function day(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10);
}

export function BackfillDialog({ dagId, onClose }: DialogProps) {
  const t = useText();
  const [from, setFrom] = useState(() => day(Date.now() - 7 * DAY_MS));
  const [to, setTo] = useState(() => day(Date.now() - DAY_MS));
  const [behaviour, setBehaviour] = useState<Behaviour>("none");
  const [backwards, setBackwards] = useState(false);
  const [most, setMost] = useState("10");
  const body: Schemas["BackfillWanted"] = {
    from_date: `${from}T00:00:00Z`, to_date: `${to}T23:59:59Z`, reprocess_behavior: behaviour, run_backwards: backwards, max_active_runs: Number(most) || 1, conf: {},
  };
  const text = JSON.stringify(body);
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 150);
    return () => clearTimeout(timer);
  }, [text]);
  const ordered = from !== "" && to !== "" && from <= to;
  const params = { params: { path: { dag_id: dagId } } };
  const preview = useQuery({
    queryKey: ["preview", "backfill", dagId, settled],
    queryFn: ({ signal }) => read(api.POST("/api/tradewind/v1/dags/{dag_id}/backfill/preview", { ...params, body: JSON.parse(settled) as Schemas["BackfillWanted"], signal })),
    enabled: ordered, placeholderData: keepPreviousData, staleTime: 0, gcTime: 0,
  });
  const create = useMutation({
    mutationFn: (fingerprint: string) => read(api.POST("/api/tradewind/v1/dags/{dag_id}/backfill", { ...params, body: { ...body, fingerprint } })),
    onSuccess: (done) => {
      toast(t("actions.backfillCreated", { count: done.total }));
      onClose();
    },
    onError: (error) => {
      if (error instanceof ApiError && error.status === 409) void preview.refetch();
    },
  });
  const plan = preview.data;
  const count = (plan?.by_outcome.new ?? 0) + (plan?.by_outcome.rerun ?? 0);
  const stale = settled !== text || (preview.isFetching && preview.isPlaceholderData);
  return (
    <Dialog
      title={t("actions.backfillTitle", { dag: dagId })} onClose={onClose} wide
      foot={
        <>
          <CopyAs
            action={{
              command: commandLine("tradewind", "backfill", "create", "--dag-id", dagId, "--from-date", from, "--to-date", `${to}T23:59:59`, behaviour !== "none" && "--reprocess-behavior", behaviour !== "none" && behaviour, backwards && "--run-backwards", "--max-active-runs", most),
              method: "POST", path: `/api/tradewind/v1/dags/${encodeURIComponent(dagId)}/backfill/preview`, body,
            }}
          />
          <span className="grow" />
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" pending={create.isPending} refused={!plan || stale ? t("common.loading") : count ? undefined : t("actions.noRuns")} onPress={() => plan && create.mutate(plan.fingerprint)}>
            {t("actions.backfillCount", { count })}
          </Button>
        </>
      }
    >
      <div className={styles.fields}>
        <TextField label={t("actions.from")} type="date" value={from} onChange={setFrom} />
        <TextField label={t("actions.to")} type="date" value={to} onChange={setTo} error={ordered ? undefined : t("actions.wrongOrder")} />
        <TextField label={t("actions.mostRuns")} type="number" min={1} value={most} onChange={setMost} />
        <Select label={t("actions.existing")} labelled value={behaviour} onChange={setBehaviour} choices={BEHAVIOURS.map((value) => ({ value, label: tOr(`actions.existing_${value}`, value) }))} />
      </div>
      <Checkbox selected={backwards} onChange={setBackwards}>{t("actions.backwards")}</Checkbox>
      {create.error && <ErrorState error={create.error} />}
      {preview.error && <ErrorState error={preview.error} retry={() => void preview.refetch()} />}
      {plan ? (
        <section className={styles.changes} data-stale={stale || undefined} aria-live="polite">
          {plan.total === 0 && <Notice>{t("actions.noRuns")}</Notice>}
          <ul className={styles.states}>
            {Object.entries(plan.by_outcome).map(([outcome, amount]) => (
              <li key={outcome}>{tOr(`actions.outcome_${outcome}`, outcome)} <b className="figures">{formatNumber(amount)}</b></li>
            ))}
          </ul>
          <ul className={styles.list} tabIndex={0} aria-label={t("actions.plannedRuns")}>
            {plan.runs.map((one) => (
              <li key={one.partition_key ?? one.logical_date}>
                {one.partition_key === null ? <TimeText at={one.logical_date} zoned /> : <span>{one.partition_key}</span>}
                <span className={one.outcome === "new" || one.outcome === "rerun" ? "" : "muted"}>{tOr(`actions.outcome_${one.outcome}`, one.outcome)}</span>
              </li>
            ))}
          </ul>
          {plan.total > plan.runs.length && <p className="muted">{t("actions.andMore", { count: plan.total - plan.runs.length })}</p>}
        </section>
      ) : (
        !preview.error && ordered && <Loading lines={4} />
      )}
    </Dialog>
  );
}
