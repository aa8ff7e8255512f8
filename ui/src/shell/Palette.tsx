// The command palette: finds DAGs, pools, and the tasks and runs of the open DAG. Escape clears the field, then closes it.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Activity, BadgeQuestionMark, Boxes, Gauge, House, ListTree, Settings, SquareDashed, type LucideIcon } from "lucide-react";
import { useEffect, useRef, useState, type ReactNode } from "react";

import { api, read, type Schemas } from "../api/client";
import { useText } from "../i18n";
import type { MessageKey } from "../i18n/keys";
import { StateIcon } from "../state/StateIcon";
import styles from "./palette.module.css";

const PAGES: readonly { to: string; text: MessageKey; icon: LucideIcon }[] = [
  { to: "/", text: "shell.triage", icon: House },
  { to: "/dags", text: "shell.dags", icon: ListTree },
  { to: "/runs", text: "shell.runs", icon: Activity },
  { to: "/approvals", text: "shell.approvals", icon: BadgeQuestionMark },
  { to: "/assets", text: "shell.assets", icon: Boxes },
  { to: "/pools", text: "shell.pools", icon: Gauge },
  ...([
    ["variables", "admin.variables"], ["connections", "admin.connections"], ["import-errors", "admin.importErrors"], ["backfills", "admin.backfills"],
    ["callbacks", "admin.callbacks"], ["audit", "admin.audit"], ["jobs", "admin.jobs"], ["config", "admin.config"], ["plugins", "admin.plugins"],
    ["providers", "admin.providers"], ["users", "admin.users"], ["roles", "admin.roles"], ["teams", "admin.teams"], ["account", "admin.account"],
  ] as const).map(([section, text]) => ({ to: `/admin/${section}`, text, icon: Settings })),
];

interface Entry {
  id: string;
  text: string;
  more?: string;
  icon: ReactNode;
  href: string;
}

function entryOf(found: Schemas["SearchHit"]): Entry {
  const dag = encodeURIComponent(found.dag_id ?? "");
  const icon = found.state ? <StateIcon state={found.state} /> : null;
  if (found.kind === "pool") return { id: `pool:${found.name}`, text: found.name, icon: <Gauge size={16} />, href: `/pools/${encodeURIComponent(found.pool ?? found.name)}` };
  if (found.kind === "run") return { id: `run:${found.name}`, text: found.name, more: found.dag_id ?? "", icon: icon ?? <Activity size={16} />, href: `/dags/${dag}/runs/${encodeURIComponent(found.run_id ?? "")}` };
  if (found.kind === "task") return { id: `task:${found.name}`, text: found.name, more: found.dag_id ?? "", icon: <SquareDashed size={16} />, href: `/dags/${dag}/grid?task=${encodeURIComponent(found.task_id ?? "")}` };
  return { id: `dag:${found.name}`, text: found.name, icon: icon ?? <ListTree size={16} />, href: `/dags/${dag}/grid` };
}

export default function Palette({ onClose }: { onClose: () => void }) {
  const t = useText();
  const navigate = useNavigate();
  const params = useParams({ strict: false });
  const dagId = "dagId" in params ? params.dagId : undefined;
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const query = useQuery({
    queryKey: ["search", text, dagId],
    queryFn: ({ signal }) => read(api.GET("/api/tradewind/v1/search", { params: { query: { q: text, ...(dagId ? { dag_id: dagId } : {}) } }, signal })),
    enabled: text.trim() !== "",
    placeholderData: keepPreviousData,
  });
  const words = text.trim().toLowerCase();
  const pages = PAGES.filter((one) => !words || t(one.text).toLowerCase().includes(words)).map((one) => ({ id: one.to, text: t(one.text), icon: <one.icon size={16} className="muted" />, href: one.to }));
  const entries: Entry[] = words ? [...(query.data?.found.map(entryOf) ?? []), ...pages] : pages;
  const chosen = Math.min(active, entries.length - 1);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  function open(entry: Entry | undefined): void {
    if (!entry) return;
    onClose();
    void navigate({ href: entry.href });
  }

  return (
    <div className={styles.overlay} role="presentation" onMouseDown={(event) => event.target === event.currentTarget && onClose()}>
      <div className={styles.palette} role="dialog" aria-modal aria-label={t("shell.keyPalette")}>
        <input
          autoFocus className={styles.field} value={text} placeholder={t("shell.palettePlaceholder")} spellCheck={false} role="combobox" aria-expanded aria-controls="palette-list"
          aria-activedescendant={entries[chosen] ? `palette-${chosen}` : undefined} aria-label={t("shell.keyPalette")}
          onChange={(event) => {
            setText(event.target.value);
            setActive(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setActive(Math.min(entries.length - 1, chosen + 1));
            else if (event.key === "ArrowUp") setActive(Math.max(0, chosen - 1));
            else if (event.key === "Enter") open(entries[chosen]);
            else if (event.key === "Escape") {
              if (text) setText("");
              else onClose();
            } else if (event.key !== "Tab") return;
            event.preventDefault();
          }}
        />
        <ul ref={list} id="palette-list" role="listbox" aria-label={t("shell.keyPalette")} className={styles.list}>
          {entries.map((one, at) => (
            <li
              key={one.id} id={`palette-${at}`} role="option" aria-selected={at === chosen} className={styles.entry} onMouseMove={() => setActive(at)}
              onMouseDown={(event) => {
                event.preventDefault();
                open(one);
              }}
            >
              {one.icon}
              <span className="cut">{one.text}</span>
              {one.more && <span className="muted cut small">{one.more}</span>}
            </li>
          ))}
          {words && !entries.length && !query.isFetching && <li className={styles.none}>{t("shell.paletteNone", { text })}</li>}
        </ul>
      </div>
    </div>
  );
}
