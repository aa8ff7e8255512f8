// The admin page: variables, connections and all other sections. All sections use the same list component.
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";

import { useText } from "../../i18n";
import type { MessageKey } from "../../i18n/keys";
import { Select } from "../../parts/fields";
import { useNarrow } from "../../parts/filters";
import { Page, Slash } from "../../parts/Page";
import { NotFoundPage } from "../../shell/fallbacks";
import { AccountSection } from "./AccountSection";
import { SessionsSection, TokensSection } from "./access";
import styles from "./admin.module.css";
import { AuditSection } from "./AuditSection";
import { ConnectionsSection } from "./connections";
import { RolesSection } from "./roles";
import { ConfigSection, ImportErrorsSection, JobsSection, PluginsSection, ProvidersSection } from "./system";
import { TeamsSection } from "./teams";
import { UsersSection } from "./users";
import { VariablesSection } from "./variables";
import { BackfillsSection, CallbacksSection } from "./work";

interface Part {
  id: string;
  text: MessageKey;
  component: ComponentType;
}

const GROUPS: readonly { text: MessageKey; parts: readonly Part[] }[] = [
  {
    text: "admin.groupStored",
    parts: [
      { id: "variables", text: "admin.variables", component: VariablesSection },
      { id: "connections", text: "admin.connections", component: ConnectionsSection },
    ],
  },
  {
    text: "admin.groupWork",
    parts: [
      { id: "import-errors", text: "admin.importErrors", component: ImportErrorsSection },
      { id: "backfills", text: "admin.backfills", component: BackfillsSection },
      { id: "callbacks", text: "admin.callbacks", component: CallbacksSection },
      { id: "audit", text: "admin.audit", component: AuditSection },
    ],
  },
  {
    text: "admin.groupSystem",
    parts: [
      { id: "jobs", text: "admin.jobs", component: JobsSection },
      { id: "config", text: "admin.config", component: ConfigSection },
      { id: "plugins", text: "admin.plugins", component: PluginsSection },
      { id: "providers", text: "admin.providers", component: ProvidersSection },
    ],
  },
  {
    text: "admin.groupAccounts",
    parts: [
      { id: "users", text: "admin.users", component: UsersSection },
      { id: "roles", text: "admin.roles", component: RolesSection },
      { id: "teams", text: "admin.teams", component: TeamsSection },
      { id: "tokens", text: "admin.allTokens", component: TokensSection },
      { id: "sessions", text: "admin.allSessions", component: SessionsSection },
    ],
  },
  { text: "admin.groupPerson", parts: [{ id: "account", text: "admin.account", component: AccountSection }] },
];
const PARTS = GROUPS.flatMap((group) => group.parts);

export default function AdminPage() {
  const t = useText();
  const { section } = useParams({ from: "/shell/admin/$section" });
  const navigate = useNavigate();
  const narrow = useNarrow();
  const shown = PARTS.find((one) => one.id === section);
  if (!shown) return <NotFoundPage />;
  const Shown = shown.component;
  return (
    <Page title={t(shown.text)} crumbs={<><span className="muted">{t("admin.title")}</span><Slash /></>} fill>
      <div className={styles.split} data-narrow={narrow || undefined}>
        {narrow ? (
          <div className={styles.choose}>
            <Select
              label={t("admin.sections")} value={section} choices={PARTS.map((one) => ({ value: one.id, label: t(one.text) }))}
              onChange={(id) => void navigate({ to: "/admin/$section", params: { section: id } })}
            />
          </div>
        ) : (
          <nav className={styles.side} aria-label={t("admin.sections")}>
            {GROUPS.map((group) => (
              <section key={group.text} aria-label={t(group.text)}>
                <h2>{t(group.text)}</h2>
                <ul>
                  {group.parts.map((one) => (
                    <li key={one.id}><Link to="/admin/$section" params={{ section: one.id }} activeOptions={{ includeSearch: false }}>{t(one.text)}</Link></li>
                  ))}
                </ul>
              </section>
            ))}
          </nav>
        )}
        <Shown key={section} />
      </div>
    </Page>
  );
}
