// The account of the user: rights, password, sessions, personal tokens.
import { useQuery } from "@tanstack/react-query";
import { Copy, Plus } from "lucide-react";
import { useState } from "react";

import { api, read } from "../../api/client";
import { meQuery, useMe } from "../../api/me";
import { queries } from "../../api/query";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { copyText } from "../../parts/CopyAs";
import { TextField } from "../../parts/fields";
import { Section } from "../../parts/Page";
import parts from "../../parts/parts.module.css";
import { errorText, fieldErrors, Loaded, Notice } from "../../parts/status";
import { toast, toastError } from "../../parts/toast";
import { AgoText, TimeText } from "../../time/TimeText";
import { TokenSheet } from "./access";
import styles from "./admin.module.css";
import { browserName } from "./browser";

export function AccountSection() {
  const t = useText();
  const query = useQuery(meQuery);
  return (
    <div className={styles.scroll}>
      <Loaded query={query}>
        {(me) => (
          <>
            <Section title={t("admin.accountOf")}>
              <dl className={parts.definition}>
                <dt>{t("admin.login")}</dt><dd><b>{me.username}</b></dd>
                {me.full_name && <><dt>{t("admin.fullName")}</dt><dd>{me.full_name}</dd></>}
                {me.email && <><dt>{t("admin.email")}</dt><dd>{me.email}</dd></>}
                <dt>{t("admin.role")}</dt><dd>{[me.role, ...me.roles.filter((one) => one !== me.role)].join(", ")}</dd>
                {me.teams.length > 0 && <><dt>{t("admin.teams")}</dt><dd>{me.teams.map((one) => `${one.team} (${one.role})`).join(", ")}</dd></>}
                <dt>{t("admin.permissions")}</dt><dd className={styles.badges}>{me.permissions.map((one) => <span key={one} className={parts.badge}>{one}</span>)}</dd>
              </dl>
            </Section>
            <Tokens />
            <Sessions />
            <Section title={t("admin.changePassword")}>{me.can_change_password ? <Password /> : <p className="muted">{t("admin.noPassword")}</p>}</Section>
          </>
        )}
      </Loaded>
    </div>
  );
}

function Password() {
  const t = useText();
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const [again, setAgain] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const [pending, setPending] = useState(false);
  const fields = fieldErrors(problem);
  const differs = again !== "" && again !== fresh ? t("admin.repeatWrong") : undefined;

  async function change(): Promise<void> {
    setPending(true);
    setProblem(null);
    try {
      await read(api.POST("/api/tradewind/v1/me/password", { body: { current_password: old, new_password: fresh } }));
      toast(t("admin.passwordChanged"));
      setOld("");
      setFresh("");
      setAgain("");
      await queries.invalidateQueries({ queryKey: ["admin", "sessions"] });
    } catch (error) {
      setProblem(error);
    }
    setPending(false);
  }

  return (
    <form
      className={styles.password}
      onSubmit={(event) => {
        event.preventDefault();
        if (old && fresh && fresh === again) void change();
      }}
    >
      <TextField label={t("admin.currentPassword")} type="password" autoComplete="current-password" value={old} onChange={setOld} error={fields.current_password} />
      <TextField label={t("admin.newPassword")} type="password" autoComplete="new-password" value={fresh} onChange={setFresh} error={fields.new_password} />
      <TextField label={t("admin.repeatPassword")} type="password" autoComplete="new-password" value={again} onChange={setAgain} error={differs} />
      {problem !== null && <Notice>{errorText(problem)}</Notice>}
      <span><Button type="submit" pending={pending} refused={old && fresh && fresh === again ? undefined : (differs ?? t("admin.changePassword"))}>{t("admin.changePassword")}</Button></span>
    </form>
  );
}

function Sessions() {
  const t = useText();
  const query = useQuery({ queryKey: ["admin", "sessions"], queryFn: ({ signal }) => read(api.GET("/api/tradewind/v1/me/sessions", { signal })) });
  async function end(id: string): Promise<void> {
    try {
      await read(api.DELETE("/api/tradewind/v1/me/sessions/{session_id}", { params: { path: { session_id: id } } }));
      await queries.invalidateQueries({ queryKey: ["admin", "sessions"] });
    } catch (error) {
      toastError(error);
    }
  }
  return (
    <Section title={t("admin.sessions")} more={<span className="muted">{t("admin.sessionsText")}</span>}>
      <Loaded query={query} lines={3}>
        {(data) => (
          <ul className={styles.items}>
            {data.sessions.map((one) => (
              <li key={one.id}>
                <span className={styles.item}>
                  <span className="cut" title={one.browser}>{browserName(one.browser)}</span>
                  <span className="muted small">{one.address} · {t("admin.seen")} <AgoText at={one.seen_at} /></span>
                </span>
                {one.is_current ? <span className={parts.badge}>{t("admin.thisSession")}</span> : <Button compact onPress={() => void end(one.id)}>{t("admin.endSession")}</Button>}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Section>
  );
}

function Tokens() {
  const t = useText();
  const query = useQuery({ queryKey: ["admin", "tokens"], queryFn: ({ signal }) => read(api.GET("/api/tradewind/v1/me/tokens", { signal })) });
  const me = useMe();
  const [adding, setAdding] = useState(false);
  const [made, setMade] = useState("");
  async function revoke(id: string): Promise<void> {
    try {
      await read(api.DELETE("/api/tradewind/v1/me/tokens/{token_id}", { params: { path: { token_id: id } } }));
      await queries.invalidateQueries({ queryKey: ["admin", "tokens"] });
    } catch (error) {
      toastError(error);
    }
  }
  return (
    <Section title={t("admin.tokens")} more={<span className={`${styles.end} row`}><Button compact onPress={() => setAdding(true)}><Plus size={14} aria-hidden /> {t("admin.createToken")}</Button></span>}>
      <p className="muted">{t("admin.tokensText")}</p>
      {made && (
        <div className={styles.made} role="status">
          <p>{t("admin.tokenMade")}</p>
          <code className="mono wrap">{made}</code>
          <span><Button compact onPress={() => void copyText(made)}><Copy size={14} aria-hidden /> {t("admin.copyToken")}</Button></span>
        </div>
      )}
      <Loaded query={query} lines={2}>
        {(data) => data.tokens.length === 0 ? <p className="muted">{t("admin.noTokens")}</p> : (
          <ul className={styles.items}>
            {data.tokens.map((one) => (
              <li key={one.id}>
                <span className={styles.item}>
                  <span className="cut" title={one.label}><b>{one.label}</b> <span className="muted">{one.role}</span></span>
                  <span className="muted small">
                    {one.expires_at ? <>{t("admin.expires")} <TimeText at={one.expires_at} precision="day" /></> : t("admin.neverExpires")}
                    {" · "}
                    {one.last_used_at ? <>{t("admin.lastUsed")} <AgoText at={one.last_used_at} /></> : t("admin.neverUsed")}
                  </span>
                </span>
                <Button compact look="danger" onPress={() => void revoke(one.id)}>{t("admin.revoke")}</Button>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {adding && me && <TokenSheet owner={me.username} own onClose={() => setAdding(false)} onMade={setMade} />}
    </Section>
  );
}
