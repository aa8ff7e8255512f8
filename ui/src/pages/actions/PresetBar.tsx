// Where the values of the trigger form come from: the defaults, a former run, or a preset that was saved in this browser.
import { Bookmark, Trash2 } from "lucide-react";
import { useState } from "react";

import type { Schemas } from "../../api/client";
import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { Select, TextField } from "../../parts/fields";
import { toastError } from "../../parts/toast";
import { StateIcon } from "../../state/StateIcon";
import styles from "./actions.module.css";
import { keepPresets, NAME_MAX, readPresets, withPreset, type Preset } from "./presets";

type Conf = Record<string, unknown>;

interface Props {
  dagId: string;
  earlier: readonly Schemas["RunView"][];
  /** The present values; null: they are no JSON object now. */
  conf: Conf | null;
  onTake: (conf: Conf) => void;
}

const PRESET = "preset ", RUN = "run ";

export function PresetBar({ dagId, earlier, conf, onTake }: Props) {
  const t = useText();
  const [presets, setPresets] = useState(() => readPresets(dagId));
  const [from, setFrom] = useState("");
  const [name, setName] = useState<string | null>(null);
  const chosen = presets.find((one) => PRESET + one.name === from);

  function keep(wanted: readonly Preset[], then: string): void {
    try {
      keepPresets(dagId, wanted);
      setPresets([...wanted]);
      setFrom(then);
      setName(null);
    } catch (error) {
      toastError(error);
    }
  }

  function take(value: string): void {
    setFrom(value);
    const preset = presets.find((one) => PRESET + one.name === value);
    const run = earlier.find((one) => RUN + one.dag_run_id === value);
    onTake(preset?.conf ?? run?.conf ?? {});
  }

  function save(): void {
    const wanted = name?.trim();
    if (wanted && conf) keep(withPreset(presets, { name: wanted, conf }), PRESET + wanted);
  }

  if (name !== null) {
    return (
      <div className={styles.presetForm}>
        <TextField
          label={t("actions.presetName")} value={name} hint={t("actions.presetHint")} autoFocus
          onChange={(text) => setName(text.slice(0, NAME_MAX))} onEnter={save}
        />
        <div className="row">
          <Button compact look="primary" refused={name.trim() && conf ? undefined : t("actions.presetRefused")} onPress={save}>{t("common.save")}</Button>
          <Button compact onPress={() => setName(null)}>{t("common.cancel")}</Button>
        </div>
      </div>
    );
  }
  return (
    <div className={styles.presets}>
      {presets.length + earlier.length > 0 && (
        <Select
          label={t("actions.valuesOf")} labelled value={from} onChange={take}
          choices={[
            { value: "", label: t("actions.valuesDefault") },
            ...presets.map((one) => ({ value: PRESET + one.name, label: one.name, icon: <Bookmark size={14} aria-hidden /> })),
            ...earlier.map((one) => ({ value: RUN + one.dag_run_id, label: one.dag_run_id, icon: <StateIcon state={one.state} size={14} decorative /> })),
          ]}
        />
      )}
      <Button look="quiet" onPress={() => setName(chosen?.name ?? "")}><Bookmark size={14} aria-hidden /> {t("actions.presetSave")}</Button>
      {chosen && <Button look="quiet" icon label={t("actions.presetRemove", { name: chosen.name })} onPress={() => keep(presets.filter((one) => one !== chosen), "")}><Trash2 size={14} /></Button>}
    </div>
  );
}
