// The tokens and sessions of all accounts, for admins; and the form of a new token.
import { KeyRound, MonitorSmartphone } from "lucide-react";
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { PAGE_SIZE } from "../../api/pages";
import { enc } from "../../api/query";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine } from "../../parts/CopyAs";
import { TextField } from "../../parts/fields";
import { usePhone } from "../../parts/filters";
import parts from "../../parts/parts.module.css";
import { To } from "../../parts/To";
import type { Column } from "../../parts/VirtualTable";
import { AgoText, TimeText } from "../../time/TimeText";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { browserName } from "./browser";
import { FormSheet, RemoveDialog } from "./sheets";

type Token = Schemas["TokenInfo"];
type Session = Schemas["SessionInfo"];

const loadTokens = async (signal: AbortSignal, offset: number) => {
  const found = await read(api.GET("/api/tradewind/v1/accounts/tokens", { signal, params: { query: { limit: PAGE_SIZE, offset } } }));
  return { rows: found.tokens, total: found.total_entries };
};

const user = (name: string) => <To className={styles.strong} href={`/admin/users?open=${enc(name)}`} title={name}>{name}</To>;

export function TokensSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:account");
  const [revoked, setRevoked] = useState<Token | null>(null);
  const columns = useMemo<Column<Token>[]>(() => {
    const found: Column<Token>[] = [
      { id: "label", title: t("admin.tokenLabel"), width: "minmax(100px, 1fr)", render: (one) => <b title={one.label}>{one.label}</b> },
      { id: "user", title: t("admin.who"), width: "minmax(90px, 0.8fr)", render: (one) => user(one.username) },
    ];
    if (!phone) {
      found.push({ id: "role", title: t("admin.role"), width: "80px", render: (one) => one.role });
      found.push({ id: "created", title: t("admin.created"), width: "104px", render: (one) => <TimeText at={one.created_at} precision="day" /> });
      found.push({ id: "expires", title: t("admin.expiresAt"), width: "104px", render: (one) => (one.expires_at ? <TimeText at={one.expires_at} precision="day" /> : <span className="muted">{t("admin.never")}</span>) });
      found.push({ id: "used", title: t("admin.lastUse"), width: "116px", right: true, render: (one) => (one.last_used_at ? <AgoText at={one.last_used_at} /> : <span className="muted">{t("admin.never")}</span>) });
    }
    found.push({
      id: "actions", title: <span className="hidden">{t("admin.revoke")}</span>, width: "96px", open: true, right: true,
      render: (one) => <Button compact look="danger" refused={refusal} onPress={() => setRevoked(one)}>{t("admin.revoke")}</Button>,
    });
    return found;
  }, [t, phone, refusal]);
  return (
    <>
      <AdminList
        name="all-tokens" topics={[]} load={loadTokens} label={t("admin.allTokens")} columns={columns} rowKey={idOf} text={tokenText}
        empty={{ icon: <KeyRound size={28} aria-hidden />, title: t("admin.emptyTokens"), text: t("admin.emptyTokensText"), code: "tradewind tokens create -u ann --label ci --role viewer --days 90" }}
      />
      {revoked && (
        <RemoveDialog
          name="all-tokens" title={t("admin.revokeTitle", { name: revoked.label })} text={t("admin.revokeText", { user: revoked.username })} button={t("admin.revoke")}
          doneText={t("admin.revoked", { name: revoked.label })} remove={() => read(api.DELETE("/api/tradewind/v1/accounts/tokens/{token_id}", { params: { path: { token_id: revoked.id } } }))}
          copy={{ command: commandLine("tradewind", "tokens", "revoke", revoked.id), method: "DELETE", path: `/api/tradewind/v1/accounts/tokens/${enc(revoked.id)}` }}
          onClose={() => setRevoked(null)}
        />
      )}
    </>
  );
}

const idOf = (one: { id: string }): string => one.id;
const tokenText = (one: Token): string => `${one.label} ${one.username} ${one.role}`;

const loadSessions = async (signal: AbortSignal, offset: number) => {
  const found = await read(api.GET("/api/tradewind/v1/accounts/sessions", { signal, params: { query: { limit: PAGE_SIZE, offset } } }));
  return { rows: found.sessions, total: found.total_entries };
};

export function SessionsSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:account");
  const [ended, setEnded] = useState<Session | null>(null);
  const columns = useMemo<Column<Session>[]>(() => {
    const found: Column<Session>[] = [
      { id: "user", title: t("admin.who"), width: "minmax(90px, 0.6fr)", render: (one) => user(one.username) },
      { id: "browser", title: t("admin.browser"), width: "minmax(100px, 2fr)", render: (one) => <span className="muted" title={one.browser}>{browserName(one.browser)}</span> },
    ];
    if (!phone) {
      found.push({ id: "address", title: t("admin.address"), width: "minmax(90px, 0.6fr)", render: (one) => <code className="mono" title={one.address}>{one.address}</code> });
      found.push({ id: "seen", title: t("admin.lastUse"), width: "116px", right: true, render: (one) => <AgoText at={one.seen_at} /> });
    }
    found.push({
      id: "actions", title: <span className="hidden">{t("admin.endSession")}</span>, width: phone ? "96px" : "128px", open: true, right: true,
      render: (one) => (one.is_current ? <span className={parts.badge}>{t("admin.thisSession")}</span> : <Button compact look="danger" refused={refusal} onPress={() => setEnded(one)}>{t("admin.endSession")}</Button>),
    });
    return found;
  }, [t, phone, refusal]);
  return (
    <>
      <AdminList
        name="all-sessions" topics={[]} load={loadSessions} label={t("admin.allSessions")} columns={columns} rowKey={idOf} text={sessionText}
        empty={{ icon: <MonitorSmartphone size={28} aria-hidden />, title: t("admin.emptySessions"), text: t("admin.emptySessionsText") }}
      />
      {ended && (
        <RemoveDialog
          name="all-sessions" title={t("admin.endSessionTitle", { name: ended.username })} text={t("admin.endSessionText", { browser: ended.browser, address: ended.address })} button={t("admin.endSession")}
          remove={() => read(api.DELETE("/api/tradewind/v1/accounts/sessions/{session_id}", { params: { path: { session_id: ended.id } } }))}
          copy={{ method: "DELETE", path: `/api/tradewind/v1/accounts/sessions/${enc(ended.id)}` }} onClose={() => setEnded(null)}
        />
      )}
    </>
  );
}

const sessionText = (one: Session): string => `${one.username} ${one.browser} ${one.address}`;

/** `own`: a token of the user who is logged in. Otherwise an admin creates a token for a service. */
export function TokenSheet({ owner, own, onClose, onMade }: { owner: string; own: boolean; onClose: () => void; onMade: (token: string) => void }) {
  const t = useText();
  const [label, setLabel] = useState("");
  const [days, setDays] = useState("90");
  const body = { label, days: days ? Number(days) : null };
  return (
    <FormSheet
      title={own ? t("admin.createToken") : t("admin.tokenOf", { name: owner })} name={own ? "tokens" : "all-tokens"} savedText={t("admin.saved", { name: label })} onClose={onClose}
      refused={label ? undefined : t("admin.needsLabel")}
      copy={{
        command: commandLine("tradewind", "tokens", "create", "--username", owner, "--label", label || "LABEL", ...(days ? ["--days", days] : [])), method: "POST",
        path: own ? "/api/tradewind/v1/me/tokens" : `/api/tradewind/v1/accounts/users/${enc(owner)}/tokens`, body,
      }}
      save={async () => {
        const found = own
          ? await read(api.POST("/api/tradewind/v1/me/tokens", { body }))
          : await read(api.POST("/api/tradewind/v1/accounts/users/{username}/tokens", { params: { path: { username: owner } }, body }));
        onMade(found.token);
      }}
    >
      {(fields) => (
        <>
          <TextField label={t("admin.tokenLabel")} value={label} onChange={setLabel} hint={t("admin.tokenLabelHint")} error={fields.label} autoFocus />
          <TextField label={t("admin.tokenDays")} type="number" min={1} value={days} onChange={setDays} hint={t("admin.tokenDaysHint")} error={fields.days} />
        </>
      )}
    </FormSheet>
  );
}
