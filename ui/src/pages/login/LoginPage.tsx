// Signing in with a name and a password, or at an identity provider. Afterwards the browser returns to the requested page, if it is a page of this server.
import { useQuery } from "@tanstack/react-query";
import { Waves } from "lucide-react";
import { useEffect, useState } from "react";

import { useAddress } from "../../address";
import { api, ApiError, read } from "../../api/client";
import { useText } from "../../i18n";
import { Button, buttonClass } from "../../parts/Button";
import { TextField } from "../../parts/fields";
import { errorText } from "../../parts/status";
import styles from "./login.module.css";

/** An address of this server, else its first page. The browser decides what an address means: it reads `/\host` and a tab between two slashes as `//host`. */
export function ownPath(next: string | undefined): string {
  if (!next?.startsWith("/") || !URL.canParse(next, location.origin)) return "/";
  const meant = new URL(next, location.origin);
  return meant.origin === location.origin && meant.pathname !== "/login" ? meant.href : "/";
}

export default function LoginPage() {
  const t = useText();
  const next = ownPath(useAddress().next);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState("");
  const [pending, setPending] = useState(false);
  const others = useQuery({ queryKey: ["login-providers"], queryFn: () => read(api.GET("/auth/providers")) });
  useEffect(() => {
    document.title = `${t("login.title")} · Tradewind`;
  }, [t]);

  async function signIn(): Promise<void> {
    setPending(true);
    setProblem("");
    try {
      await read(api.POST("/auth/login", { body: { username: name, password } }));
      location.assign(next);
    } catch (error) {
      setProblem(error instanceof ApiError && error.status === 401 ? t("login.wrong") : errorText(error));
      setPending(false);
    }
  }

  return (
    <main className={styles.page}>
      <form
        className={styles.card}
        onSubmit={(event) => {
          event.preventDefault();
          void signIn();
        }}
      >
        <h1 className={styles.brand}>
          <Waves size={22} aria-hidden /> Tradewind
        </h1>
        <TextField label={t("login.name")} name="username" value={name} onChange={setName} autoComplete="username" required autoFocus />
        <TextField label={t("login.password")} name="password" type="password" value={password} onChange={setPassword} autoComplete="current-password" required />
        {problem && <p className="danger" role="alert">{problem}</p>}
        <Button type="submit" look="primary" pending={pending}>
          {t("login.submit")}
        </Button>
        {others.data?.providers.map((one) => (
          <a key={one.name} className={buttonClass({})} href={`${one.url}?next=${encodeURIComponent(next)}`}>{one.label}</a>
        ))}
        <p className="muted small">{t("login.first")} <code className="mono">tradewind users list</code></p>
      </form>
    </main>
  );
}
