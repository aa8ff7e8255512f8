// Connections: forms by type, a test, masked secrets.
import { Plug } from "lucide-react";
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { PAGE_SIZE } from "../../api/pages";
import { enc } from "../../api/query";
import { useText } from "../../i18n";
import type { MessageKey } from "../../i18n/keys";
import { Button } from "../../parts/Button";
import { commandLine } from "../../parts/CopyAs";
import { TextField } from "../../parts/fields";
import { usePhone } from "../../parts/filters";
import { errorText, Notice } from "../../parts/status";
import type { Column } from "../../parts/VirtualTable";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { FormSheet, RemoveDialog } from "./sheets";

type Connection = Schemas["ConnectionView"];
type FieldName = "host" | "port" | "schema" | "login" | "password";
const MASK = "***";

/** The fields of a type and their names; other types have all fields. */
const FORMS: Readonly<Record<string, { fields: Partial<Record<FieldName, MessageKey>>; port?: string }>> = {
  postgres: { fields: { host: "admin.host", port: "admin.port", schema: "admin.database", login: "admin.login", password: "admin.password" }, port: "5432" },
  mysql: { fields: { host: "admin.host", port: "admin.port", schema: "admin.database", login: "admin.login", password: "admin.password" }, port: "3306" },
  mssql: { fields: { host: "admin.host", port: "admin.port", schema: "admin.database", login: "admin.login", password: "admin.password" }, port: "1433" },
  redis: { fields: { host: "admin.host", port: "admin.port", login: "admin.login", password: "admin.password" }, port: "6379" },
  http: { fields: { host: "admin.host", port: "admin.port", schema: "admin.scheme", login: "admin.login", password: "admin.password" }, port: "443" },
  sqlite: { fields: { host: "admin.path" } },
  fs: { fields: {} },
  ssh: { fields: { host: "admin.host", port: "admin.port", login: "admin.login", password: "admin.password" }, port: "22" },
  sftp: { fields: { host: "admin.host", port: "admin.port", login: "admin.login", password: "admin.password" }, port: "22" },
  ftp: { fields: { host: "admin.host", port: "admin.port", login: "admin.login", password: "admin.password" }, port: "21" },
  smtp: { fields: { host: "admin.host", port: "admin.port", login: "admin.login", password: "admin.password" }, port: "587" },
  aws: { fields: { login: "admin.accessKey", password: "admin.secretKey" } },
  slack: { fields: { password: "admin.token" } },
  google_cloud_platform: { fields: {} },
};
/** The types that the field offers: those with a form, and other common types. */
const TYPES = [
  ...Object.keys(FORMS), "azure_data_explorer", "databricks", "docker", "elasticsearch", "generic", "hive_cli", "kubernetes", "mongo", "oracle", "presto", "snowflake", "trino", "vertica", "wasb",
].sort();
const ALL_FIELDS: Record<FieldName, MessageKey> = { host: "admin.host", port: "admin.port", schema: "admin.schema", login: "admin.login", password: "admin.password" };

const load = async (signal: AbortSignal, offset: number, search: string) => {
  const query = { limit: PAGE_SIZE, offset, order_by: ["connection_id"], ...(search ? { connection_id_pattern: search } : {}) };
  const found = await read(api.GET("/api/v2/connections", { signal, params: { query } }));
  return { rows: found.connections, total: found.total_entries };
};

export function ConnectionsSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:connection");
  const columns = useMemo<Column<Connection>[]>(() => {
    const found: Column<Connection>[] = [
      { id: "id", title: t("admin.connId"), width: "minmax(120px, 1.8fr)", render: (one) => <b title={one.connection_id}>{one.connection_id}</b> },
      { id: "type", title: t("admin.connType"), width: "96px", render: (one) => one.conn_type },
      { id: "host", title: t("admin.host"), width: "minmax(120px, 1.2fr)", render: (one) => <code className="mono" title={one.host ?? ""}>{[one.host, one.port].filter((part) => part !== null && part !== "").join(":")}</code> },
    ];
    if (!phone) {
      found.push({ id: "login", title: t("admin.login"), width: "minmax(80px, 0.6fr)", render: (one) => one.login });
      found.push({ id: "description", title: t("admin.description"), width: "minmax(100px, 1.2fr)", render: (one) => <span className="muted" title={one.description ?? ""}>{one.description}</span> });
    }
    return found;
  }, [t, phone]);
  return (
    <AdminList
      name="connections" load={load} search={t("admin.searchConnection")} label={t("admin.connections")} columns={columns} rowKey={keyOf} text={keyOf}
      add={{ label: t("admin.addConnection"), refused: refusal }} sheet={(one, onClose) => <ConnectionSheet connection={one} refusal={refusal} onClose={onClose} />}
      empty={{
        icon: <Plug size={28} aria-hidden />, title: t("admin.emptyConnections"), text: t("admin.emptyConnectionsText"),
        code: "tradewind connections add warehouse --conn-type postgres --conn-host db.example.com --conn-login etl --conn-password -",
      }}
    />
  );
}

const keyOf = (one: Connection): string => one.connection_id;

function isObject(text: string): boolean {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found);
  } catch {
    return false;
  }
}

function ConnectionSheet({ connection, refusal, onClose }: { connection: Connection | null; refusal: string | undefined; onClose: () => void }) {
  const t = useText();
  const [id, setId] = useState(connection?.connection_id ?? "");
  const [type, setType] = useState(connection?.conn_type ?? "");
  const [description, setDescription] = useState(connection?.description ?? "");
  const [extra, setExtra] = useState(connection?.extra ?? "");
  const [values, setValues] = useState<Record<FieldName, string>>({
    host: connection?.host ?? "", port: connection?.port === null || connection === null ? "" : String(connection.port), schema: connection?.schema ?? "",
    login: connection?.login ?? "", password: connection?.password ?? "",
  });
  const [deleting, setDeleting] = useState(false);
  const [tested, setTested] = useState<{ works: boolean | null; message: string } | null>(null); // `works` null: it was not tested
  const form = FORMS[type];
  // A field that has a value is shown even if the type does not need it: nothing stored is hidden.
  const fields = (Object.keys(ALL_FIELDS) as FieldName[]).filter((name) => !form || form.fields[name] || values[name]);
  const body = {
    connection_id: id, conn_type: type, description: description || null, host: values.host || null, port: values.port ? Number(values.port) : null,
    schema: values.schema || null, login: values.login || null, password: values.password || null, extra: extra || null,
  };
  const wrongId = id && !/^[\w.-]+$/.test(id) ? t("admin.connIdWrong") : undefined;
  const wrongExtra = extra && !isObject(extra) ? t("admin.extraWrong") : undefined;

  async function test(): Promise<void> {
    setTested(null);
    try {
      const found = await read(api.POST("/api/v2/connections/test", { body }));
      setTested({ works: found.status, message: found.message });
    } catch (error) {
      setTested({ works: null, message: errorText(error) });
    }
  }

  if (deleting && connection) {
    return (
      <RemoveDialog
        name="connections" title={t("admin.deleteTitle", { name: id })} text={t("admin.deleteConnection")} doneText={t("admin.deleted", { name: id })}
        remove={() => read(api.DELETE("/api/v2/connections/{connection_id}", { params: { path: { connection_id: id } } }))}
        copy={{ command: commandLine("tradewind", "connections", "delete", id), method: "DELETE", path: `/api/v2/connections/${enc(id)}` }}
        onClose={(removed) => (removed ? onClose() : setDeleting(false))}
      />
    );
  }
  return (
    <FormSheet
      title={connection ? t("admin.editConnection", { id }) : t("admin.addConnection")} name="connections" savedText={t("admin.saved", { name: id })} onClose={onClose}
      refused={refusal ?? wrongId ?? wrongExtra ?? (!id ? t("admin.connId") : !type ? t("admin.connType") : undefined)}
      onDelete={connection && !refusal ? () => setDeleting(true) : undefined}
      copy={{
        command: commandLine(
          "tradewind", "connections", "add", id || "ID", "--conn-type", type || "TYPE", ...(values.host ? ["--conn-host", values.host] : []),
          ...(values.login ? ["--conn-login", values.login] : []), ...(values.password ? ["--conn-password", "-"] : []), ...(values.schema ? ["--conn-schema", values.schema] : []),
          ...(values.port ? ["--conn-port", values.port] : []), connection !== null && "--overwrite",
        ),
        // A copied command may end in chats and shell histories, so it contains no secrets.
        method: connection ? "PATCH" : "POST", path: connection ? `/api/v2/connections/${enc(id)}` : "/api/v2/connections", body: { ...body, password: body.password && MASK },
      }}
      extra={<Button refused={refusal ?? (type ? undefined : t("admin.connType"))} onPress={() => void test()}>{t("admin.test")}</Button>}
      save={() =>
        connection
          ? read(api.PATCH("/api/v2/connections/{connection_id}", { params: { path: { connection_id: id } }, body }))
          : read(api.POST("/api/v2/connections", { body }))
      }
    >
      {(errors) => (
        <>
          {!connection && <TextField label={t("admin.connId")} value={id} onChange={setId} error={errors.connection_id ?? wrongId} autoFocus mono />}
          <TextField label={t("admin.connType")} value={type} onChange={setType} hint={t("admin.connTypeHint")} error={errors.conn_type} suggestions={TYPES} mono />
          <div className={styles.fields}>
            {fields.map((name) => (
              <TextField
                key={name} label={t(form?.fields[name] ?? ALL_FIELDS[name])} value={values[name]} onChange={(value) => setValues({ ...values, [name]: value })} error={errors[name]}
                type={name === "password" ? "password" : name === "port" ? "number" : "text"} autoComplete={name === "password" ? "new-password" : "off"}
                {...(name === "port" && form?.port ? { placeholder: form.port } : {})}
                hint={name === "password" && connection?.password === MASK ? t("admin.passwordKept") : undefined}
              />
            ))}
          </div>
          <TextField label={t("admin.extra")} value={extra} onChange={setExtra} lines={4} mono error={errors.extra ?? wrongExtra} />
          <TextField label={t("admin.description")} value={description} onChange={setDescription} lines={2} error={errors.description} />
          {tested && (tested.works ? <p role="status" className={styles.works}>{t("admin.testWorks", { message: tested.message })}</p> : <Notice>{tested.works === null ? tested.message : t("admin.testFails", { message: tested.message })}</Notice>)}
        </>
      )}
    </FormSheet>
  );
}
