// The navigation bar, and the page beside it. On a phone the bar is a strip at the top.
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import {
  Activity, BadgeQuestionMark, Boxes, Check, CircleQuestionMark, Clock, ExternalLink, Gauge, House, Languages, ListTree, LogOut, Menu as MenuIcon, Monitor, Moon, Search, Settings, Sun, User, Waves,
} from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from "react";

import { api, read } from "../api/client";
import { startLive, useLiveness } from "../api/live";
import { useMe } from "../api/me";
import { formatNumber, LANGUAGES, setLanguage, useLanguage, useText, type Language } from "../i18n";
import type { MessageKey } from "../i18n/keys";
import { Button } from "../parts/Button";
import { Menu } from "../parts/Menu";
import { toastError, Toasts } from "../parts/toast";
import { zoneName } from "../time/format";
import { LOCAL, setZoneChoice, useZone, useZoneChoice, type ZoneChoice } from "../time/zone";
import { useFirstContent } from "./firstContent";
import { handleKey, usePageKeys, type PageKey } from "./keys";
import styles from "./shell.module.css";
import { setTheme, useTheme, type Theme } from "./theme";

const Palette = lazy(() => import("./Palette"));
const KeyHelp = lazy(() => import("./KeyHelp"));

interface Place {
  to: string;
  text: MessageKey;
  icon: ReactNode;
  key: string;
}

/** The names of zones change twice a year. */
const loadedAt = Date.now();

const PLACES: readonly Place[] = [
  { to: "/", text: "shell.triage", icon: <House size={16} />, key: "g h" },
  { to: "/dags", text: "shell.dags", icon: <ListTree size={16} />, key: "g d" },
  { to: "/runs", text: "shell.runs", icon: <Activity size={16} />, key: "g r" },
  { to: "/approvals", text: "shell.approvals", icon: <BadgeQuestionMark size={16} />, key: "g i" },
  { to: "/assets", text: "shell.assets", icon: <Boxes size={16} />, key: "g a" },
  { to: "/pools", text: "shell.pools", icon: <Gauge size={16} />, key: "g p" },
  { to: "/admin", text: "shell.admin", icon: <Settings size={16} />, key: "g s" },
];

export default function Shell() {
  const t = useText();
  const navigate = useNavigate();
  const [overlay, setOverlay] = useState<"palette" | "keys" | null>(null);
  const [barOpen, setBarOpen] = useState(false);
  useEffect(startLive, []);
  const hasContent = useFirstContent();
  const keys = useMemo<PageKey[]>(
    () => [
      { key: "?", what: "shell.keyHelp", run: () => setOverlay("keys") },
      { key: "Ctrl K", what: "shell.keyPalette" },
      { key: "/", what: "shell.keySearch", run: focusSearch },
      ...PLACES.map((one) => ({ key: one.key, what: one.text, run: () => void navigate({ to: one.to }) })),
    ],
    [navigate],
  );
  usePageKeys(keys);
  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") setOverlay((now) => (now === "palette" ? null : "palette"));
      else if (!handleKey(event)) return;
      event.preventDefault();
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#page">{t("shell.skip")}</a>
      <nav className={styles.bar} aria-label={t("shell.places")} data-open={barOpen || undefined}>
        {hasContent && (
          <>
            <div className={styles.brandRow}>
              <Link to="/" className={styles.brand}>
                <Waves size={18} aria-hidden /> Tradewind
              </Link>
              <span className={styles.phone}>
                <Button look="quiet" icon label={t("shell.keyPalette")} onPress={() => setOverlay("palette")}><Search size={18} /></Button>
                <Button look="quiet" icon label={t("shell.menu")} onPress={() => setBarOpen(!barOpen)}><MenuIcon size={18} /></Button>
              </span>
            </div>
            <button type="button" className={styles.jump} onClick={() => setOverlay("palette")}>
              <Search size={14} aria-hidden /> <span className="cut">{t("shell.jump")}</span> <kbd>Ctrl K</kbd>
            </button>
            <ul className={styles.places} onClick={() => setBarOpen(false)}>
              {PLACES.map((one) => (
                <li key={one.to}>
                  <Link to={one.to} className={styles.place} activeOptions={{ exact: one.to === "/" }} title={`${t(one.text)} (${one.key})`}>
                    {one.icon} {t(one.text)}
                    {one.to === "/" && <FailedCount />}
                  </Link>
                </li>
              ))}
            </ul>
            <PluginLinks />
            <Settled onHelp={() => setOverlay("keys")} />
          </>
        )}
      </nav>
      <main id="page" className={styles.main} tabIndex={-1}>
        <Outlet />
      </main>
      <Suspense fallback={null}>
        {overlay === "palette" && <Palette onClose={() => setOverlay(null)} />}
        {overlay === "keys" && <KeyHelp onClose={() => setOverlay(null)} />}
      </Suspense>
      <Toasts />
    </div>
  );
}

function focusSearch(): void {
  document.querySelector<HTMLInputElement>("main input[data-search]")?.focus();
}

/** Links of plugins to other web pages, grouped by the categories that the plugins give. */
function PluginLinks() {
  const t = useText();
  const links = useMe()?.links ?? [];
  if (links.length === 0) return null;
  const groups = new Map<string, (typeof links)[number][]>();
  for (const one of links) {
    const category = one.category ?? t("shell.links");
    groups.set(category, [...(groups.get(category) ?? []), one]);
  }
  return (
    <div className={styles.links}>
      {[...groups].map(([category, entries]) => (
        <section key={category} aria-label={category}>
          <h2 className="muted small cut" title={category}>{category}</h2>
          <ul className={styles.places}>
            {entries.map((one) => (
              <li key={`${one.name} ${one.href}`}>
                <a href={one.href} target="_blank" rel="noreferrer" className={styles.place} title={one.href}>
                  <ExternalLink size={16} aria-hidden /> <span className="cut">{one.name}</span>
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function FailedCount() {
  const t = useText();
  const failed = useMe()?.failed_runs ?? 0;
  return failed ? <b className={styles.count} title={t("shell.failedRuns", { count: failed })}>{formatNumber(failed)}</b> : null;
}

/** The lower part of the bar: how fresh the page is, zone, language, theme, account. */
function Settled({ onHelp }: { onHelp: () => void }) {
  const t = useText();
  const theme = useTheme();
  const me = useMe();
  const choice = useZoneChoice();
  const zone = useZone();
  const shown = useLanguage();
  const marks = (is: boolean): ReactNode => (is ? <Check size={14} /> : <span style={{ width: 14 }} />);
  const zones: { id: ZoneChoice; label: string }[] = [
    { id: "utc", label: "UTC" },
    { id: "local", label: t("shell.zoneLocal", { zone: LOCAL }) },
    { id: "dag", label: t("shell.zoneDag") },
  ];
  const themes: { id: Theme; label: string; icon: ReactNode }[] = [
    { id: "system", label: t("shell.themeSystem"), icon: <Monitor size={14} /> },
    { id: "light", label: t("shell.themeLight"), icon: <Sun size={14} /> },
    { id: "dark", label: t("shell.themeDark"), icon: <Moon size={14} /> },
  ];
  return (
    <div className={styles.settled}>
      <LiveLine />
      <div className={styles.settings}>
        <Menu label={t("shell.zone")} entries={zones.map((one) => ({ ...one, icon: marks(one.id === choice), onAction: () => setZoneChoice(one.id) }))}>
          <Button look="quiet" compact><Clock size={14} aria-hidden /> {zoneName(zone, loadedAt)}</Button>
        </Menu>
        <Menu
          label={t("shell.language")}
          entries={Object.entries(LANGUAGES).map(([id, label]) => ({
            id, label, icon: marks(id === shown), onAction: () => void setLanguage(id as Language).catch(toastError),
          }))}
        >
          <Button look="quiet" compact icon label={t("shell.language")}><Languages size={14} /></Button>
        </Menu>
        <Menu label={t("shell.theme")} entries={themes.map((one) => ({ ...one, end: marks(one.id === theme), onAction: () => setTheme(one.id) }))}>
          <Button look="quiet" compact icon label={t("shell.theme")}><Sun size={14} /></Button>
        </Menu>
        <Button look="quiet" compact icon label={`${t("shell.keyHelp")} (?)`} onPress={onHelp}><CircleQuestionMark size={14} /></Button>
        <Menu
          label={t("shell.account")}
          entries={[
            { id: "name", label: me ? `${me.username} · ${me.role}` : "…", disabled: true, onAction: () => undefined },
            { id: "account", label: t("shell.accountPage"), icon: <User size={14} />, onAction: () => location.assign("/admin/account") },
            { id: "out", label: t("shell.logOut"), icon: <LogOut size={14} />, onAction: () => void logOut() },
          ]}
        >
          <Button look="quiet" compact icon label={t("shell.account")}><User size={14} /></Button>
        </Menu>
      </div>
    </div>
  );
}

function LiveLine() {
  const t = useText();
  const state = useLiveness();
  if (state === "live" || state === "connecting") return null;
  return <p className={styles.live} role="status">{t(state === "polling" ? "shell.polling" : "shell.noScheduler")}</p>;
}

async function logOut(): Promise<void> {
  let answer: Response;
  try {
    const sent = api.POST("/auth/logout");
    await read(sent);
    answer = (await sent).response;
  } catch (error) {
    toastError(error);
    return;
  }
  location.assign(answer.headers.get("X-Tradewind-Logout") ?? "/login"); // the identity provider's page, where the login was there
}
