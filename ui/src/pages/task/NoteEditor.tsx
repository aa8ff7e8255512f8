// The note of a run or of a task instance, with a field to change it.
import { useState } from "react";

import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { TextField } from "../../parts/fields";
import { errorText } from "../../parts/status";
import styles from "./task.module.css";

export const NOTE_MAX = 1000;

interface Props {
  note: string | null;
  refusal: string | undefined;
  /** Writes the note; an empty text removes it. */
  save: (text: string) => Promise<void>;
}

export function NoteEditor({ note, refusal, save }: Props) {
  const t = useText();
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [pending, setPending] = useState(false);
  if (text === null) {
    return (
      <div className={styles.note}>
        <p className={`wrap ${note ? "" : "muted"}`}>{note || t("task.noteNone")}</p>
        <Button compact refused={refusal} onPress={() => setText(note ?? "")}>{note ? t("common.edit") : t("task.noteAdd")}</Button>
      </div>
    );
  }
  return (
    <form
      className={styles.noteForm}
      onSubmit={(event) => {
        event.preventDefault();
        setPending(true);
        setProblem("");
        save(text)
          .then(() => setText(null))
          .catch((error: unknown) => setProblem(errorText(error)))
          .finally(() => setPending(false));
      }}
    >
      <TextField
        label={t("task.note")} value={text} onChange={setText} lines={3} autoFocus
        error={problem || (text.length > NOTE_MAX ? t("task.noteLong", { most: NOTE_MAX, count: text.length }) : undefined)}
      />
      <div className="row">
        <Button type="submit" look="primary" compact pending={pending} refused={text.length > NOTE_MAX ? t("task.noteLong", { most: NOTE_MAX, count: text.length }) : undefined}>{t("common.save")}</Button>
        <Button compact onPress={() => setText(null)}>{t("common.cancel")}</Button>
      </div>
    </form>
  );
}
