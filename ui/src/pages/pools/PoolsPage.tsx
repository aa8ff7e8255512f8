// All pools with the use of their slots.
import { Link } from "@tanstack/react-router";
import { Plus, SearchX } from "lucide-react";
import { useMemo, useState } from "react";

import { useAddress } from "../../address";
import type { Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { usePages } from "../../api/pages";
import { enc } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { SearchParam, usePhone } from "../../parts/filters";
import { Page } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { EmptyState, Loaded } from "../../parts/status";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { StateIcon } from "../../state/StateIcon";
import { PoolBar } from "./PoolBar";
import { PoolSheet } from "./PoolSheet";
import styles from "./pools.module.css";
import { loadPools } from "./query";

type Pool = Schemas["PoolView"];

export default function PoolsPage() {
  const t = useText();
  const { q = "" } = useAddress();
  const pages = usePages<Pool>(["pools", q], ["pools", "triage"], (signal, offset) => loadPools(signal, offset, q), nameOf);
  const [adding, setAdding] = useState(false);
  const refusal = useRefusal("edit:pool");
  const columns = useColumns();
  return (
    <Page
      title={t("pools.title")} fill toolbar={<SearchParam name="q" label={t("pools.search")} width={240} />}
      actions={<Button look="primary" refused={refusal} onPress={() => setAdding(true)}><Plus size={14} aria-hidden /> {t("pools.add")}</Button>}
    >
      <div className={styles.list}>
        <Loaded query={pages}>
          {(data) =>
            data.length === 0 ? (
              <EmptyState icon={<SearchX size={28} aria-hidden />} title={t("pools.none")}><p>{t("pools.noneText")}</p></EmptyState>
            ) : (
              <VirtualTable label={t("pools.table")} rows={data} columns={columns} rowKey={nameOf} onEnd={pages.loadMore} href={(pool) => `/pools/${enc(pool.name)}`} rowHeight={44} />
            )
          }
        </Loaded>
      </div>
      {adding && <PoolSheet pool={null} onClose={() => setAdding(false)} />}
    </Page>
  );
}

const nameOf = (pool: Pool): string => pool.name;

function useColumns(): readonly Column<Pool>[] {
  const t = useText();
  const phone = usePhone();
  return useMemo(() => {
    const found: Column<Pool>[] = [
      {
        id: "name", title: t("pools.name"), width: phone ? "minmax(90px, 1fr)" : "minmax(160px, 1fr)",
        render: (pool) => <Link className={styles.name} to="/pools/$pool" params={{ pool: pool.name }} title={pool.name}>{pool.name}</Link>,
      },
      {
        id: "use", title: t("pools.use"), width: phone ? "56px" : "minmax(160px, 1.4fr)",
        render: (pool) => <PoolBar slots={pool.slots} running={pool.running_slots} queued={pool.queued_slots} deferred={pool.include_deferred ? pool.deferred_slots : 0} />,
      },
      {
        id: "used", title: t("pools.slots"), width: phone ? "64px" : "128px", right: true,
        render: (pool) => (
          <Link className={`${styles.figure} figures`} to="/pools/$pool" params={{ pool: pool.name }}>
            {pool.slots < 0
              ? t("pools.usedUnlimited", { used: formatNumber(pool.occupied_slots) })
              : t("pools.used", { used: formatNumber(pool.occupied_slots), slots: formatNumber(pool.slots) })}
          </Link>
        ),
      },
      {
        id: "waiting", title: t("pools.waits"), width: phone ? "56px" : "84px", right: true,
        render: (pool) => pool.scheduled_slots > 0 && (
          <Link className={styles.figure} to="/pools/$pool" params={{ pool: pool.name }}>
            <StateIcon state="scheduled" size={14} decorative /> {formatNumber(pool.scheduled_slots)}
          </Link>
        ),
      },
    ];
    if (!phone) {
      found.push({
        id: "description", title: t("pools.description"), width: "minmax(120px, 1.6fr)",
        render: (pool) => (
          <span className="muted" title={pool.description ?? ""}>
            {pool.include_deferred && <span className={parts.badge}>{t("pools.deferredCounted")}</span>} {pool.description}
          </span>
        ),
      });
    }
    return found;
  }, [t, phone]);
}
