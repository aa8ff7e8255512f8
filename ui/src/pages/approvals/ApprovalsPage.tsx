// Questions of tasks to persons: the pending ones with a form each, and those that were answered.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { BadgeQuestionMark } from "lucide-react";
import { useMemo, useRef } from "react";

import { useAddress } from "../../address";
import { api, read } from "../../api/client";
import { live } from "../../api/query";
import { useText } from "../../i18n";
import { SearchParam, Segments } from "../../parts/filters";
import { Page } from "../../parts/Page";
import { EmptyState, Loaded } from "../../parts/status";
import { usePageKeys, type PageKey } from "../../shell/keys";
import styles from "./approvals.module.css";
import { keyOf, QuestionCard } from "./QuestionCard";

const SHOWN_MAX = 100;

export default function ApprovalsPage() {
  const t = useText();
  const { q = "", show = "" } = useAddress();
  const answered = show === "answered";
  const query = useQuery({
    ...live(["approvals", q, answered], ["triage"], (signal) =>
      read(api.GET("/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/hitlDetails", {
        signal,
        params: {
          path: { dag_id: "~", dag_run_id: "~" },
          query: { limit: SHOWN_MAX, response_received: answered, order_by: [answered ? "-responded_at" : "created_at"], ...(q ? { subject_search: q } : {}) },
        },
      }))),
    placeholderData: keepPreviousData,
  });
  const list = useRef<HTMLUListElement>(null);
  const keys = useMemo<PageKey[]>(() => {
    function move(step: number): void {
      const cards = [...(list.current?.children ?? [])] as HTMLElement[];
      const at = cards.findIndex((one) => one.contains(document.activeElement));
      const next = cards[Math.max(0, Math.min(cards.length - 1, at < 0 ? 0 : at + step))];
      next?.focus();
      next?.scrollIntoView({ block: "nearest" });
    }
    return [
      { key: "j", what: "approvals.keyNext", run: () => move(1) },
      { key: "k", what: "approvals.keyPrevious", run: () => move(-1) },
    ];
  }, []);
  usePageKeys(keys);
  return (
    <Page
      title={t("approvals.title")}
      toolbar={
        <>
          <Segments name="show" label={t("approvals.filter")} choices={[{ value: "", label: t("approvals.pending") }, { value: "answered", label: t("approvals.answered") }]} />
          <SearchParam name="q" label={t("approvals.search")} width={240} />
        </>
      }
    >
      <Loaded query={query}>
        {(data) =>
          data.hitl_details.length === 0 ? (
            <EmptyState icon={<BadgeQuestionMark size={28} aria-hidden />} title={t(answered ? "approvals.noneAnswered" : "approvals.none")}>
              <p>{t("approvals.noneText")}</p>
            </EmptyState>
          ) : (
            <ul ref={list} className={styles.cards}>
              {data.hitl_details.map((one) => (
                <li key={keyOf(one)} tabIndex={-1} className={styles.card} aria-label={one.subject}>
                  <QuestionCard question={one} />
                </li>
              ))}
              {(data.total_entries ?? 0) > data.hitl_details.length && <li className="muted">{t("approvals.shownOf", { shown: data.hitl_details.length, total: data.total_entries ?? 0 })}</li>}
            </ul>
          )
        }
      </Loaded>
    </Page>
  );
}
