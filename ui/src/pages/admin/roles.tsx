// Roles: built-in roles, which are fixed, and custom roles, which give rights to some DAGs.
import { Plus, ShieldUser, X } from "lucide-react";
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc, live } from "../../api/query";
import { tOr, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine } from "../../parts/CopyAs";
import { SideSheet } from "../../parts/Dialog";
import { Select, TextField } from "../../parts/fields";
import { usePhone } from "../../parts/filters";
import parts from "../../parts/parts.module.css";
import type { Column } from "../../parts/VirtualTable";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { FormSheet, RemoveDialog } from "./sheets";

type Role = Schemas["RoleInfo"];
type Grant = Schemas["Grant"];
const ROLES = "/api/tradewind/v1/accounts/roles";

export const BUILT_IN = ["public", "viewer", "user", "op", "admin"] as const;
export type BuiltIn = (typeof BUILT_IN)[number];
const ACTIONS = ["read", "run", "edit", "delete"] as const;

export const rolesQuery = live(["admin", "roles", "all"], [], (signal) => read(api.GET("/api/tradewind/v1/accounts/roles", { signal })));

const load = async (signal: AbortSignal) => {
  const found = await read(api.GET("/api/tradewind/v1/accounts/roles", { signal }));
  return { rows: found.roles, total: found.total_entries };
};

export function RolesSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:account");
  const columns = useMemo<Column<Role>[]>(() => {
    const found: Column<Role>[] = [
      { id: "name", title: t("admin.role"), width: "minmax(110px, 0.6fr)", render: (one) => <b title={one.name}>{one.name}</b> },
      { id: "kind", title: t("admin.kind"), width: "96px", render: (one) => <span className="muted">{t(one.is_built_in ? "admin.builtIn" : "admin.custom")}</span> },
      {
        id: "may", title: t("admin.permissions"), width: "minmax(120px, 2fr)",
        render: (one) => {
          const text = isBuiltIn(one) ? t(`admin.roleMay_${one.name}`) : one.grants.map((grant) => `${grant.dag_id}: ${tOr(`admin.grant_${grant.action}`, grant.action)}`).join(" · ");
          return <span title={text}>{text}</span>;
        },
      },
    ];
    if (!phone) found.push({ id: "description", title: t("admin.description"), width: "minmax(100px, 1fr)", render: (one) => <span className="muted" title={one.description}>{one.description}</span> });
    return found;
  }, [t, phone]);
  return (
    <AdminList
      name="roles" topics={[]} load={load} label={t("admin.roles")} columns={columns} rowKey={nameOf} text={roleText} add={{ label: t("admin.addRole"), refused: refusal }}
      sheet={(one, onClose) => (one?.is_built_in ? <BuiltInSheet role={one} onClose={onClose} /> : <RoleSheet role={one} refusal={refusal} onClose={onClose} />)}
      empty={{ icon: <ShieldUser size={28} aria-hidden />, title: t("admin.emptyRoles"), text: t("admin.emptyRolesText"), code: "tradewind roles create finance" }}
    />
  );
}

function isBuiltIn(role: Role): role is Role & { name: BuiltIn } {
  return role.is_built_in && (BUILT_IN as readonly string[]).includes(role.name);
}

const nameOf = (one: Role): string => one.name;
const roleText = (one: Role): string => [one.name, one.description, ...one.grants.map((grant) => grant.dag_id)].join(" ");

function BuiltInSheet({ role, onClose }: { role: Role; onClose: () => void }) {
  const t = useText();
  return (
    <SideSheet title={t("admin.roleTitle", { name: role.name })} onClose={onClose}>
      {isBuiltIn(role) && <p>{t(`admin.roleMay_${role.name}`)}</p>}
      <p className="muted">{t("admin.builtInText")}</p>
      <p className={styles.badges}>{role.permissions.map((one) => <span key={one} className={parts.badge}>{one}</span>)}</p>
    </SideSheet>
  );
}

/** `role` null: a new role. */
function RoleSheet({ role, refusal, onClose }: { role: Role | null; refusal: string | undefined; onClose: () => void }) {
  const t = useText();
  const [name, setName] = useState(role?.name ?? "");
  const [description, setDescription] = useState(role?.description ?? "");
  const [rows, setRows] = useState<readonly Grant[]>(() => (role ? (role.grants as Grant[]) : [{ dag_id: "", action: "read" }]));
  const [deleting, setDeleting] = useState(false);
  const grants = rows.filter((one) => one.dag_id);
  const change = (at: number, changes: Partial<Grant>): void => setRows(rows.map((one, place) => (place === at ? { ...one, ...changes } : one)));
  if (deleting && role) {
    return (
      <RemoveDialog
        name="roles" title={t("admin.deleteTitle", { name })} text={t("admin.deleteRole")} doneText={t("admin.deleted", { name })}
        remove={() => read(api.DELETE("/api/tradewind/v1/accounts/roles/{role}", { params: { path: { role: name } } }))}
        copy={{ command: commandLine("tradewind", "roles", "delete", name), method: "DELETE", path: `${ROLES}/${enc(name)}` }}
        onClose={(removed) => (removed ? onClose() : setDeleting(false))}
      />
    );
  }
  return (
    <FormSheet
      title={role ? t("admin.roleTitle", { name }) : t("admin.addRole")} name="roles" savedText={t("admin.saved", { name })} onClose={onClose}
      refused={refusal ?? (name ? undefined : t("admin.needsName"))} onDelete={role && !refusal ? () => setDeleting(true) : undefined}
      copy={{
        command: commandsOf(role, name || "NAME", description, grants), method: role ? "PUT" : "POST", path: role ? `${ROLES}/${enc(name)}/grants` : ROLES,
        body: role ? { grants } : { name, description, grants },
      }}
      save={() =>
        role
          ? read(api.PUT("/api/tradewind/v1/accounts/roles/{role}/grants", { params: { path: { role: name } }, body: { grants } }))
          : read(api.POST("/api/tradewind/v1/accounts/roles", { body: { name, description, grants } }))
      }
    >
      {(errors) => (
        <>
          {role ? role.description && <p className="muted">{role.description}</p> : (
            <>
              <TextField label={t("admin.name")} value={name} onChange={setName} error={errors.name} autoComplete="off" autoFocus />
              <TextField label={t("admin.description")} value={description} onChange={setDescription} error={errors.description} />
            </>
          )}
          <fieldset className={styles.group}>
            <legend>{t("admin.grants")}</legend>
            <p className="muted small">{t("admin.grantsHint")}</p>
            <ul className={styles.lines}>
              {rows.map((one, at) => (
                <li key={at}>
                  <TextField label={t("admin.dagPattern")} value={one.dag_id} onChange={(dag_id) => change(at, { dag_id })} error={errors[`grants.${at}.dag_id`]} mono />
                  <Select label={t("admin.action")} labelled value={one.action} onChange={(action) => change(at, { action })} choices={ACTIONS.map((value) => ({ value, label: t(`admin.grant_${value}`) }))} />
                  <Button look="quiet" icon label={t("admin.removeLine")} onPress={() => setRows(rows.filter((_, place) => place !== at))}><X size={14} /></Button>
                </li>
              ))}
            </ul>
            <span><Button compact onPress={() => setRows([...rows, { dag_id: "", action: "read" }])}><Plus size={14} aria-hidden /> {t("admin.addGrant")}</Button></span>
          </fieldset>
        </>
      )}
    </FormSheet>
  );
}

/** The commands that make the same changes, one in a line. */
function commandsOf(role: Role | null, name: string, description: string, grants: readonly Grant[]): string | undefined {
  const same = (one: { dag_id: string; action: string }) => (other: { dag_id: string; action: string }): boolean => one.dag_id === other.dag_id && one.action === other.action;
  const before = role?.grants ?? [];
  const lines = [
    ...(role ? [] : [commandLine("tradewind", "roles", "create", name, ...(description ? ["--description", description] : []))]),
    ...grants.filter((one) => !before.some(same(one))).map((one) => commandLine("tradewind", "roles", "grant", name, "--dag-id", one.dag_id, "--action", one.action)),
    ...before.filter((one) => !grants.some(same(one))).map((one) => commandLine("tradewind", "roles", "revoke", name, "--dag-id", one.dag_id, "--action", one.action)),
  ];
  return lines.length ? lines.join("\n") : undefined;
}
