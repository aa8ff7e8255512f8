// The form of a pool, and the question before one is deleted.
import { useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { enc } from "../../api/query";
import { t, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine, CopyAs } from "../../parts/CopyAs";
import { Dialog, SideSheet } from "../../parts/Dialog";
import { Checkbox, TextField } from "../../parts/fields";
import { errorText, fieldErrors, Notice } from "../../parts/status";
import { toast } from "../../parts/toast";
import { refreshPools } from "./query";

/** `pool` null: a new pool. */
export function PoolSheet({ pool, onClose }: { pool: Pick<Schemas["PoolUse"], "name" | "slots" | "description" | "include_deferred"> | null; onClose: () => void }) {
  useText();
  const [name, setName] = useState(pool?.name ?? "");
  const [slots, setSlots] = useState(String(pool?.slots ?? 8));
  const [description, setDescription] = useState(pool?.description ?? "");
  const [deferred, setDeferred] = useState(pool?.include_deferred ?? false);
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const number = /^-?\d+$/.test(slots.trim()) ? Number(slots) : NaN;
  const wrong = { name: name ? "" : t("pools.nameWrong"), slots: number >= -1 ? "" : t("pools.slotsWrong") };
  const fields = fieldErrors(problem);
  const body = { slots: number, description: description || null, include_deferred: deferred };

  async function save(): Promise<void> {
    setPending(true);
    setProblem(null);
    try {
      await read(pool
        ? api.PATCH("/api/v2/pools/{pool_name}", { params: { path: { pool_name: name } }, body })
        : api.POST("/api/v2/pools", { body: { name, ...body } }));
      await refreshPools();
      toast(t("pools.saved", { name }));
      onClose();
    } catch (error) {
      setProblem(error);
      setPending(false);
    }
  }

  return (
    <SideSheet
      title={pool ? t("pools.editTitle", { name: pool.name }) : t("pools.addTitle")} onClose={onClose}
      foot={
        <>
          <CopyAs
            action={{
              command: commandLine("tradewind", "pools", "set", name || "NAME", slots, description, deferred && "--include-deferred"),
              method: pool ? "PATCH" : "POST", path: pool ? `/api/v2/pools/${enc(name)}` : "/api/v2/pools", body: pool ? body : { name, ...body },
            }}
          />
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" pending={pending} refused={wrong.name || wrong.slots} onPress={() => void save()}>{t("common.save")}</Button>
        </>
      }
    >
      {!pool && <TextField label={t("pools.name")} value={name} onChange={setName} error={fields.name} autoFocus mono />}
      <TextField label={t("pools.slots")} type="number" min={-1} step={1} value={slots} onChange={setSlots} hint={t("pools.slotsHint")} error={fields.slots ?? (slots ? wrong.slots : undefined)} />
      <TextField label={t("pools.description")} value={description} onChange={setDescription} lines={3} error={fields.description} />
      <Checkbox selected={deferred} onChange={setDeferred}>{t("pools.includeDeferred")}</Checkbox>
      {problem !== null && Object.keys(fields).length === 0 && <Notice>{errorText(problem)}</Notice>}
    </SideSheet>
  );
}

interface DeleteProps {
  name: string;
  holders: number;
  waiting: number;
  onDeleted: () => void;
  onClose: (deleted: boolean) => void;
}

export function DeletePool({ name, holders, waiting, onDeleted, onClose }: DeleteProps) {
  useText();
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState("");

  async function remove(): Promise<void> {
    setPending(true);
    setProblem("");
    try {
      await read(api.DELETE("/api/v2/pools/{pool_name}", { params: { path: { pool_name: name } } }));
      onDeleted();
      toast(t("pools.deleted", { name }));
      onClose(true);
      await refreshPools();
    } catch (error) {
      setProblem(errorText(error));
      setPending(false);
    }
  }

  return (
    <Dialog
      title={t("pools.deleteTitle", { name })} onClose={() => onClose(false)}
      foot={
        <>
          <CopyAs action={{ command: commandLine("tradewind", "pools", "delete", name), method: "DELETE", path: `/api/v2/pools/${enc(name)}` }} />
          <Button onPress={() => onClose(false)}>{t("common.cancel")}</Button>
          <Button look="danger" pending={pending} onPress={() => void remove()}>{t("common.delete")}</Button>
        </>
      }
    >
      <p>{t("pools.deleteText")}</p>
      {holders + waiting > 0 && <p>{t("pools.deleteHolds", { holders, waiting })}</p>}
      {problem && <Notice>{problem}</Notice>}
    </Dialog>
  );
}
