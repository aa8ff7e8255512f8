// All assets: when each was updated last, what produces it, what waits for it.
import { Link } from "@tanstack/react-router";
import { Boxes, Play, SearchX } from "lucide-react";
import { lazy, Suspense, useMemo, useState } from "react";

import { useAddress } from "../../address";
import type { Schemas } from "../../api/client";
import { usePages } from "../../api/pages";
import { useRefusal } from "../../api/me";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { SearchParam, Segments, useNarrow, usePhone } from "../../parts/filters";
import { Page } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { EmptyState, Loaded, Loading } from "../../parts/status";
import { VirtualTable, type Column } from "../../parts/VirtualTable";
import { AgoText } from "../../time/TimeText";
import { MaterialiseDialog } from "./AssetActions";
import styles from "./assets.module.css";
import { loadAssets } from "./query";

const AssetGraph = lazy(() => import("./AssetGraph").then((found) => ({ default: found.AssetGraph })));

type Asset = Schemas["AssetView"];

const EXAMPLE = `orders = Asset("s3://shop/orders")

@task(outlets=[orders])
def load_orders(): ...

@dag(schedule=[orders])
def report(): ...`;

export default function AssetsPage() {
  const t = useText();
  const { view = "" } = useAddress();
  return (
    <Page
      title={t("assets.title")} fill
      toolbar={
        <>
          <SearchParam name="q" label={t("assets.search")} width={240} />
          <Segments name="view" label={t("assets.view")} choices={[{ value: "", label: t("assets.list") }, { value: "graph", label: t("assets.graph") }]} />
        </>
      }
    >
      {view === "graph" ? <Suspense fallback={<Loading />}><AssetGraph /></Suspense> : <AssetList />}
    </Page>
  );
}

const keyOf = (one: Asset): string => String(one.id);

function AssetList() {
  const t = useText();
  const { q = "" } = useAddress();
  const pages = usePages<Asset>(["assets", q], ["triage"], (signal, offset) => loadAssets(signal, offset, q), keyOf);
  const [open, setOpen] = useState<Asset | null>(null);
  const columns = useColumns(setOpen);
  return (
    <>
      <div className={styles.list}>
        <Loaded query={pages}>
          {(data) =>
            data.length > 0 ? (
              <VirtualTable label={t("assets.title")} rows={data} columns={columns} rowKey={keyOf} onEnd={pages.loadMore} href={(one) => `/assets/${one.id}`} rowHeight={40} />
            ) : q ? (
              <EmptyState icon={<SearchX size={28} aria-hidden />} title={t("assets.none")}><p>{t("assets.noneText")}</p></EmptyState>
            ) : (
              <EmptyState icon={<Boxes size={28} aria-hidden />} title={t("assets.empty")}>
                <p>{t("assets.emptyText")}</p>
                <pre className={parts.code}>{EXAMPLE}</pre>
              </EmptyState>
            )
          }
        </Loaded>
      </div>
      {open && <MaterialiseDialog asset={open} onClose={() => setOpen(null)} />}
    </>
  );
}

function useColumns(materialise: (asset: Asset) => void): readonly Column<Asset>[] {
  const t = useText();
  const phone = usePhone();
  const narrow = useNarrow();
  const refusal = useRefusal("edit:asset");
  return useMemo(() => {
    const link = (one: Asset, text: string) => <Link to="/assets/$assetId" params={{ assetId: String(one.id) }} className={styles.count}>{text}</Link>;
    const found: Column<Asset>[] = [
      { id: "name", title: t("assets.name"), width: "minmax(120px, 1fr)", render: (one) => <Link className={styles.strong} to="/assets/$assetId" params={{ assetId: String(one.id) }} title={one.name}>{one.name}</Link> },
    ];
    if (!phone) found.push({ id: "uri", title: t("assets.uri"), width: "minmax(140px, 1.4fr)", render: (one) => <code className="mono muted" title={one.uri}>{one.uri}</code> });
    found.push({
      id: "last", title: t("assets.lastEvent"), width: "100px", right: true,
      render: (one) => (one.last_asset_event.timestamp ? <AgoText at={one.last_asset_event.timestamp} /> : <span className="muted">{t("assets.never")}</span>),
    });
    if (!phone) {
      found.push({ id: "producers", title: t("assets.producers"), width: "100px", right: true, render: (one) => link(one, t("assets.producerCount", { count: one.producing_tasks.length })) });
      found.push({ id: "consumers", title: t("assets.consumers"), width: "100px", right: true, render: (one) => link(one, t("assets.consumerCount", { count: one.scheduled_dags.length })) });
    }
    found.push({
      id: "materialise", title: <span className="hidden">{t("assets.materialise")}</span>, width: phone || narrow ? "36px" : "120px", open: true, right: true,
      render: (one) => {
        const refused = refusal ?? (one.producing_tasks.length ? undefined : t("assets.noProducer"));
        return phone || narrow
          ? <Button look="quiet" icon compact label={t("assets.materialiseTitle", { name: one.name })} refused={refused} onPress={() => materialise(one)}><Play size={14} /></Button>
          : <Button compact refused={refused} onPress={() => materialise(one)}><Play size={12} aria-hidden /> {t("assets.materialise")}</Button>;
      },
    });
    return found;
  }, [t, phone, narrow, refusal, materialise]);
}
