// People and services that may use the API: roles, passwords, logins.
import { useQuery } from "@tanstack/react-query";
import { Users } from "lucide-react";
import { useMemo, useState } from "react";

import { useAddress } from "../../address";
import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { PAGE_SIZE } from "../../api/pages";
import { enc } from "../../api/query";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine } from "../../parts/CopyAs";
import { Checkbox, Select, TextField } from "../../parts/fields";
import { FilterSelect, usePhone } from "../../parts/filters";
import parts from "../../parts/parts.module.css";
import { To } from "../../parts/To";
import type { Column } from "../../parts/VirtualTable";
import { AgoText, TimeText } from "../../time/TimeText";
import { TokenSheet } from "./access";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { BUILT_IN, rolesQuery, type BuiltIn } from "./roles";
import { SecretDialog, type SecretText } from "./Secret";
import { FormSheet, RemoveDialog } from "./sheets";

type User = Schemas["UserInfo"];
const USERS = "/api/tradewind/v1/accounts/users";

const load = async (signal: AbortSignal, offset: number) => {
  const found = await read(api.GET("/api/tradewind/v1/accounts/users", { signal, params: { query: { limit: PAGE_SIZE, offset } } }));
  return { rows: found.users, total: found.total_entries };
};

export function UsersSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:account");
  const { role = "" } = useAddress();
  const [secret, setSecret] = useState<SecretText | null>(null);
  const columns = useMemo<Column<User>[]>(() => {
    const found: Column<User>[] = [
      { id: "name", title: t("admin.login"), width: "minmax(110px, 1.8fr)", render: (one) => <b className={one.is_active ? "" : styles.off} title={one.username}>{one.username}</b> },
      { id: "role", title: t("admin.role"), width: phone ? "100px" : "minmax(90px, 0.8fr)", render: (one) => <span title={[one.role, ...one.roles].join(", ")}>{[one.role, ...one.roles].join(", ")}</span> },
      { id: "state", title: t("admin.state"), width: "96px", render: (one) => <span className={one.is_active ? "" : "muted"}>{t(one.is_active ? "admin.userActive" : "admin.userOff")}</span> },
    ];
    if (!phone) {
      found.splice(1, 0, { id: "kind", title: t("admin.kind"), width: "84px", render: (one) => <span className="muted">{t(one.kind === "service" ? "admin.kindService" : "admin.kindUser")}</span> });
      found.push({ id: "teams", title: t("admin.teams"), width: "minmax(80px, 0.8fr)", render: (one) => <span title={one.teams.map((team) => team.team).join(", ")}>{one.teams.map((team) => team.team).join(", ")}</span> });
      found.push({ id: "email", title: t("admin.email"), width: "minmax(100px, 1fr)", render: (one) => <span className="muted" title={one.email}>{one.email}</span> });
      found.push({ id: "seen", title: t("admin.lastLogin"), width: "116px", right: true, render: (one) => (one.last_login_at ? <AgoText at={one.last_login_at} /> : <span className="muted">{t("admin.never")}</span>) });
    }
    return found;
  }, [t, phone]);
  const keep = useMemo(() => (role ? (one: User) => one.role === role : undefined), [role]);
  return (
    <>
      <AdminList
        name="users" topics={[]} load={load} label={t("admin.users")} columns={columns} rowKey={nameOf} text={userText} add={{ label: t("admin.addUser"), refused: refusal }}
        filters={<FilterSelect name="role" label={t("admin.role")} choices={BUILT_IN.map((value) => ({ value, label: value }))} />} {...(keep ? { keep } : {})}
        sheet={(one, onClose) => (one ? <UserSheet user={one} refusal={refusal} onClose={onClose} onSecret={setSecret} /> : <NewUserSheet onClose={onClose} onSecret={setSecret} />)}
        empty={{ icon: <Users size={28} aria-hidden />, title: t("admin.emptyUsers"), text: t("admin.emptyUsersText"), code: "tradewind users create -u ann -r user --use-random-password" }}
      />
      {secret && <SecretDialog {...secret} onClose={() => setSecret(null)} />}
    </>
  );
}

const nameOf = (one: User): string => one.username;
const userText = (one: User): string => [one.username, one.full_name, one.email, one.role, ...one.roles, ...one.teams.map((team) => team.team)].join(" ");

interface SheetProps {
  onClose: () => void;
  onSecret: (secret: SecretText) => void;
}

function NewUserSheet({ onClose, onSecret }: SheetProps) {
  const t = useText();
  const [name, setName] = useState("");
  const [kind, setKind] = useState<User["kind"]>("user");
  const [role, setRole] = useState<BuiltIn>("viewer");
  const [roles, setRoles] = useState<readonly string[]>([]);
  const [fullName, setFullName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const isService = kind === "service";
  const body = { username: name, role, roles: [...roles], kind: isService ? ("service" as const) : ("user" as const), email, full_name: fullName };
  return (
    <FormSheet
      title={t("admin.addUser")} name="users" savedText={t("admin.saved", { name })} onClose={onClose} refused={name ? undefined : t("admin.needsName")}
      copy={{
        command: commandLine("tradewind", "users", "create", "-u", name || "NAME", "-r", role, ...(fullName ? ["-f", fullName] : []), ...(email ? ["-e", email] : []), isService ? "--service" : !password && "--use-random-password"),
        method: "POST", path: USERS, body,
      }}
      save={async () => {
        const made = await read(api.POST("/api/tradewind/v1/accounts/users", { body: { ...body, password: password || null } }));
        if (made.password !== null) onSecret({ title: t("admin.passwordOf", { name }), text: t("admin.passwordMade"), secret: made.password });
      }}
    >
      {(errors) => (
        <>
          <TextField label={t("admin.login")} value={name} onChange={setName} error={errors.username} autoComplete="off" autoFocus />
          <Select
            label={t("admin.kind")} labelled value={kind} onChange={setKind} hint={t(isService ? "admin.serviceHint" : "admin.userHint")}
            choices={[{ value: "user", label: t("admin.kindUser") }, { value: "service", label: t("admin.kindService") }]}
          />
          <RoleFields role={role} roles={roles} onRole={setRole} onRoles={setRoles} />
          {!isService && (
            <>
              <TextField label={t("admin.fullName")} value={fullName} onChange={setFullName} error={errors.full_name} autoComplete="off" />
              <TextField label={t("admin.email")} type="email" value={email} onChange={setEmail} error={errors.email} autoComplete="off" />
              <TextField label={t("admin.password")} type="password" value={password} onChange={setPassword} hint={t("admin.passwordEmpty")} error={errors.password} autoComplete="new-password" />
            </>
          )}
        </>
      )}
    </FormSheet>
  );
}

function UserSheet({ user, refusal, onClose, onSecret }: SheetProps & { user: User; refusal: string | undefined }) {
  const t = useText();
  const [role, setRole] = useState(user.role as BuiltIn);
  const [roles, setRoles] = useState<readonly string[]>(user.roles);
  const [fullName, setFullName] = useState(user.full_name);
  const [email, setEmail] = useState(user.email);
  const [active, setActive] = useState(user.is_active);
  const [asked, setAsked] = useState<"delete" | "password" | "logout" | "token" | null>(null);
  const name = user.username;
  const path = { params: { path: { username: name } } };
  const body = { role, roles: [...roles], email, full_name: fullName, is_active: active };
  const isService = user.kind === "service";
  if (asked === "token") {
    return <TokenSheet owner={name} own={false} onClose={() => setAsked(null)} onMade={(secret) => onSecret({ title: t("admin.tokenOf", { name }), text: t("admin.tokenMade"), secret })} />;
  }
  if (asked === "delete") {
    return (
      <RemoveDialog
        name="users" title={t("admin.deleteTitle", { name })} text={t("admin.deleteUser")} doneText={t("admin.deleted", { name })}
        remove={() => read(api.DELETE("/api/tradewind/v1/accounts/users/{username}", path))}
        copy={{ command: commandLine("tradewind", "users", "delete", "-u", name), method: "DELETE", path: `${USERS}/${enc(name)}` }}
        onClose={(removed) => (removed ? onClose() : setAsked(null))}
      />
    );
  }
  if (asked === "logout") {
    return (
      <RemoveDialog
        name="sessions" title={t("admin.endLoginsTitle", { name })} text={t("admin.endLoginsText")} button={t("admin.endLogins")} doneText={t("admin.loginsEnded", { name })}
        remove={() => read(api.POST("/api/tradewind/v1/accounts/users/{username}/logout", path))}
        copy={{ command: commandLine("tradewind", "users", "logout", "-u", name), method: "POST", path: `${USERS}/${enc(name)}/logout` }}
        onClose={() => setAsked(null)}
      />
    );
  }
  if (asked === "password") {
    return (
      <RemoveDialog
        name="users" title={t("admin.newPasswordTitle", { name })} text={t("admin.newPasswordText")} button={t("admin.newPasswordMake")}
        remove={async () => {
          const made = await read(api.POST("/api/tradewind/v1/accounts/users/{username}/password", { ...path, body: {} }));
          if (made.password !== null) onSecret({ title: t("admin.passwordOf", { name }), text: t("admin.passwordMade"), secret: made.password });
        }}
        copy={{ command: commandLine("tradewind", "users", "reset-password", "-u", name, "--use-random-password"), method: "POST", path: `${USERS}/${enc(name)}/password`, body: {} }}
        onClose={(done) => (done ? onClose() : setAsked(null))}
      />
    );
  }
  return (
    <FormSheet
      title={t("admin.editUser", { name })} name="users" savedText={t("admin.saved", { name })} onClose={onClose} refused={refusal} onDelete={refusal ? undefined : () => setAsked("delete")}
      copy={{ command: commandsOf(user, body), method: "PATCH", path: `${USERS}/${enc(name)}`, body }}
      save={() => read(api.PATCH("/api/tradewind/v1/accounts/users/{username}", { ...path, body }))}
    >
      {(errors) => (
        <>
          <dl className={parts.definition}>
            <dt>{t("admin.kind")}</dt><dd>{t(isService ? "admin.kindService" : "admin.kindUser")}{user.source !== "local" && ` · ${user.source}`}</dd>
            <dt>{t("admin.created")}</dt><dd><TimeText at={user.created_at} zoned /></dd>
            <dt>{t("admin.lastLogin")}</dt><dd>{user.last_login_at ? <TimeText at={user.last_login_at} zoned /> : t("admin.never")}</dd>
            {user.teams.length > 0 && (
              <><dt>{t("admin.teams")}</dt><dd className={styles.badges}>{user.teams.map((one) => <To key={one.team} href={`/admin/teams?open=${enc(one.team)}`}>{one.team} ({one.role})</To>)}</dd></>
            )}
          </dl>
          <RoleFields role={role} roles={roles} onRole={setRole} onRoles={setRoles} />
          {!isService && (
            <>
              <TextField label={t("admin.fullName")} value={fullName} onChange={setFullName} error={errors.full_name} autoComplete="off" />
              <TextField label={t("admin.email")} type="email" value={email} onChange={setEmail} error={errors.email} autoComplete="off" />
            </>
          )}
          <Checkbox selected={active} onChange={setActive}>{t("admin.mayLogIn")}</Checkbox>
          <div className={styles.badges}>
            {isService
              ? <Button refused={refusal} onPress={() => setAsked("token")}>{t("admin.createToken")}</Button>
              : <Button refused={refusal ?? (user.source === "local" ? undefined : t("admin.noPassword"))} onPress={() => setAsked("password")}>{t("admin.newPasswordMake")}</Button>}
            <Button refused={refusal} onPress={() => setAsked("logout")}>{t("admin.endLogins")}</Button>
          </div>
          <p className="row"><To href={`/admin/tokens?q=${enc(name)}`}>{t("admin.tokensOf")}</To><To href={`/admin/sessions?q=${enc(name)}`}>{t("admin.sessionsOf")}</To></p>
        </>
      )}
    </FormSheet>
  );
}

/** The commands that make the same changes, one in a line. */
function commandsOf(user: User, wanted: { role: string; roles: readonly string[]; is_active: boolean }): string | undefined {
  const account = ["-u", user.username];
  const lines = [
    ...(wanted.role === user.role ? [] : [commandLine("tradewind", "users", "add-role", ...account, "-r", wanted.role)]),
    ...wanted.roles.filter((one) => !user.roles.includes(one)).map((one) => commandLine("tradewind", "users", "add-role", ...account, "-r", one)),
    ...user.roles.filter((one) => !wanted.roles.includes(one)).map((one) => commandLine("tradewind", "users", "remove-role", ...account, "-r", one)),
    ...(wanted.is_active === user.is_active ? [] : [commandLine("tradewind", "users", wanted.is_active ? "enable" : "disable", ...account)]),
  ];
  return lines.length ? lines.join("\n") : undefined;
}

function RoleFields({ role, roles, onRole, onRoles }: { role: BuiltIn; roles: readonly string[]; onRole: (role: BuiltIn) => void; onRoles: (roles: readonly string[]) => void }) {
  const t = useText();
  const custom = (useQuery(rolesQuery).data?.roles ?? []).filter((one) => !one.is_built_in);
  return (
    <>
      <Select label={t("admin.role")} labelled value={role} onChange={onRole} hint={t(`admin.roleMay_${role}`)} choices={BUILT_IN.map((value) => ({ value, label: value }))} />
      {custom.length > 0 && (
        <fieldset className={styles.group}>
          <legend>{t("admin.customRoles")}</legend>
          <div className={styles.badges}>
            {custom.map((one) => (
              <Checkbox key={one.name} selected={roles.includes(one.name)} onChange={(is) => onRoles(is ? [...roles, one.name] : roles.filter((other) => other !== one.name))}>{one.name}</Checkbox>
            ))}
          </div>
        </fieldset>
      )}
    </>
  );
}
