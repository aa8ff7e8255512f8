// Parts that the forms of the admin page share: the footer of a sheet, and the question before a deletion.
import { useState, type ReactNode } from "react";

import { queries } from "../../api/query";
import { t, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { CopyAs, type CopyableAction } from "../../parts/CopyAs";
import { Dialog, SideSheet } from "../../parts/Dialog";
import { errorText, fieldErrors, Notice } from "../../parts/status";
import { toast } from "../../parts/toast";

interface SheetProps {
  title: string;
  /** Why the form cannot be saved now. */
  refused: string | undefined;
  save: () => Promise<unknown>;
  savedText: string;
  /** The list to read again. */
  name: string;
  copy: CopyableAction;
  onClose: () => void;
  onDelete?: (() => void) | undefined;
  extra?: ReactNode;
  children: (fields: Readonly<Record<string, string>>) => ReactNode;
}

export function FormSheet({ title, refused, save, savedText, name, copy, onClose, onDelete, extra, children }: SheetProps) {
  useText();
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const fields = fieldErrors(problem);

  async function send(): Promise<void> {
    setPending(true);
    setProblem(null);
    try {
      await save();
      await queries.invalidateQueries({ queryKey: ["admin", name] });
      toast(savedText);
      onClose();
    } catch (error) {
      setProblem(error);
      setPending(false);
    }
  }

  return (
    <SideSheet
      title={title} onClose={onClose}
      foot={
        <>
          {onDelete && <Button look="danger" onPress={onDelete}>{t("common.delete")}</Button>}
          <span style={{ flex: 1 }} />
          <CopyAs action={copy} />
          {extra}
          <Button look="primary" pending={pending} refused={refused} onPress={() => void send()}>{t("common.save")}</Button>
        </>
      }
    >
      {children(fields)}
      {problem !== null && <Notice>{errorText(problem)}</Notice>}
    </SideSheet>
  );
}

interface RemoveProps {
  title: string;
  /** What the deletion removes. */
  text: string;
  button?: string;
  remove: () => Promise<unknown>;
  doneText?: string;
  name: string;
  copy: CopyableAction;
  onClose: (removed: boolean) => void;
}

export function RemoveDialog({ title, text, button, remove, doneText, name, copy, onClose }: RemoveProps) {
  useText();
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState("");

  async function send(): Promise<void> {
    setPending(true);
    setProblem("");
    try {
      await remove();
      await queries.invalidateQueries({ queryKey: ["admin", name] });
      if (doneText) toast(doneText);
      onClose(true);
    } catch (error) {
      setProblem(errorText(error));
      setPending(false);
    }
  }

  return (
    <Dialog
      title={title} onClose={() => onClose(false)}
      foot={
        <>
          <CopyAs action={copy} />
          <Button onPress={() => onClose(false)}>{t("common.close")}</Button>
          <Button look="danger" pending={pending} onPress={() => void send()}>{button ?? t("common.delete")}</Button>
        </>
      }
    >
      <p>{text}</p>
      {problem && <Notice>{problem}</Notice>}
    </Dialog>
  );
}
