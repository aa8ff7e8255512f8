// The template fields of a task instance, as they were rendered for it.
import { Copy } from "lucide-react";

import { useText } from "../../i18n";
import type { MessageKey } from "../../i18n/keys";
import { Button } from "../../parts/Button";
import { copyText } from "../../parts/CopyAs";
import parts from "../../parts/parts.module.css";
import { EmptyState } from "../../parts/status";
import { JsonTree } from "./JsonTree";
import styles from "./task.module.css";

interface Props {
  fields: object;
  /** The names of the fields, also of those that were not rendered. */
  names: readonly string[];
  /** The state of the task instance: after a success, missing fields are empty fields. */
  state: string | null;
  started: boolean;
  ended: boolean;
}

/** Title and text where nothing is rendered. Fields without a value are not stored, so a task that started may have only empty ones. */
function emptyTexts(names: readonly string[], state: string | null, started: boolean, ended: boolean): readonly [MessageKey, MessageKey] {
  if (names.length === 0) return ["task.renderedNone", "task.renderedTeach"];
  if (state === "success") return ["task.renderedEmpty", "task.renderedTeach"];
  if (started) return ["task.renderedNoValue", "task.renderedNoValueTeach"];
  return ended ? ["task.renderedNot", "task.renderedNotTeach"] : ["task.renderedLater", "task.renderedTeach"];
}

export function RenderedView({ fields, names, state, started, ended }: Props) {
  const t = useText();
  const shown = Object.entries(fields as Record<string, unknown>);
  if (shown.length === 0) {
    const [title, teach] = emptyTexts(names, state, started, ended);
    return (
      <EmptyState title={t(title)}>
        {names.length > 0 && <p className="mono">{names.join(", ")}</p>}
        <p>{t(teach)}</p>
      </EmptyState>
    );
  }
  return (
    <div className={styles.padded}>
      {shown.map(([name, value]) => {
        const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
        return (
          <section key={name} className={styles.rendered} aria-label={name}>
            <header>
              <h3 className="mono wrap">{name}</h3>
              <Button look="quiet" compact icon label={t("task.copyValue")} onPress={() => void copyText(text)}><Copy size={14} /></Button>
            </header>
            {typeof value === "string" || value === null || typeof value !== "object" ? <pre className={`${parts.code} ${styles.value}`} tabIndex={0}>{text}</pre> : <JsonTree value={value} />}
          </section>
        );
      })}
    </div>
  );
}
