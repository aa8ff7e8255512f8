// Variables: values that DAGs read. The server masks those whose name marks a secret.
import { Braces } from "lucide-react";
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { PAGE_SIZE } from "../../api/pages";
import { enc } from "../../api/query";
import { useText } from "../../i18n";
import { commandLine } from "../../parts/CopyAs";
import { TextField } from "../../parts/fields";
import { usePhone } from "../../parts/filters";
import type { Column } from "../../parts/VirtualTable";
import { AdminList } from "./AdminList";
import { FormSheet, RemoveDialog } from "./sheets";

type Variable = Schemas["VariableView"];
const MASK = "***";

const load = async (signal: AbortSignal, offset: number, search: string) => {
  const query = { limit: PAGE_SIZE, offset, order_by: ["key"], ...(search ? { variable_key_pattern: search } : {}) };
  const found = await read(api.GET("/api/v2/variables", { signal, params: { query } }));
  return { rows: found.variables, total: found.total_entries };
};

export function VariablesSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:variable");
  const columns = useMemo<Column<Variable>[]>(() => [
    { id: "key", title: t("admin.key"), width: "minmax(120px, 1.6fr)", render: (one) => <b className="cut" title={one.key}>{one.key}</b> },
    { id: "value", title: t("admin.value"), width: "minmax(120px, 1.6fr)", render: (one) => <code className="mono" title={one.value ?? ""}>{one.value}</code> },
    ...(phone ? [] : [{ id: "description", title: t("admin.description"), width: "minmax(120px, 1.4fr)", render: (one: Variable) => <span className="muted" title={one.description ?? ""}>{one.description}</span> }]),
  ], [t, phone]);
  return (
    <AdminList
      name="variables" load={load} search={t("admin.searchKey")} label={t("admin.variables")} columns={columns} rowKey={keyOf} text={keyOf}
      add={{ label: t("admin.addVariable"), refused: refusal }} sheet={(one, onClose) => <VariableSheet variable={one} refusal={refusal} onClose={onClose} />}
      empty={{ icon: <Braces size={28} aria-hidden />, title: t("admin.emptyVariables"), text: t("admin.emptyVariablesText"), code: "tradewind variables set region eu-west-1" }}
    />
  );
}

const keyOf = (one: Variable): string => one.key;

function VariableSheet({ variable, refusal, onClose }: { variable: Variable | null; refusal: string | undefined; onClose: () => void }) {
  const t = useText();
  const [key, setKey] = useState(variable?.key ?? "");
  const [value, setValue] = useState(variable?.value ?? "");
  const [description, setDescription] = useState(variable?.description ?? "");
  const [deleting, setDeleting] = useState(false);
  const masked = variable?.value === MASK;
  const body = { key, value, description: description || null };
  if (deleting && variable) {
    return (
      <RemoveDialog
        name="variables" title={t("admin.deleteTitle", { name: key })} text={t("admin.deleteVariable")} doneText={t("admin.deleted", { name: key })}
        remove={() => read(api.DELETE("/api/v2/variables/{variable_key}", { params: { path: { variable_key: key } } }))}
        copy={{ command: commandLine("tradewind", "variables", "delete", key), method: "DELETE", path: `/api/v2/variables/${enc(key)}` }}
        onClose={(removed) => (removed ? onClose() : setDeleting(false))}
      />
    );
  }
  return (
    <FormSheet
      title={variable ? t("admin.editVariable", { key }) : t("admin.addVariable")} name="variables" savedText={t("admin.saved", { name: key })} onClose={onClose}
      refused={refusal ?? (key ? undefined : t("admin.key"))} onDelete={variable && !refusal ? () => setDeleting(true) : undefined}
      copy={{ command: commandLine("tradewind", "variables", "set", key || "KEY", value), method: variable ? "PATCH" : "POST", path: variable ? `/api/v2/variables/${enc(key)}` : "/api/v2/variables", body }}
      save={() => {
        if (!variable) return read(api.POST("/api/v2/variables", { body }));
        const kept = masked && value === MASK;
        return read(api.PATCH("/api/v2/variables/{variable_key}", {
          params: { path: { variable_key: key }, ...(kept ? { query: { update_mask: ["description"] } } : {}) }, body,
        }));
      }}
    >
      {(fields) => (
        <>
          {!variable && <TextField label={t("admin.key")} value={key} onChange={setKey} error={fields.key} autoFocus mono />}
          <TextField label={t("admin.value")} value={value} onChange={setValue} lines={8} mono hint={masked ? t("admin.masked") : undefined} error={fields.value} />
          <TextField label={t("admin.description")} value={description} onChange={setDescription} lines={2} error={fields.description} />
        </>
      )}
    </FormSheet>
  );
}
