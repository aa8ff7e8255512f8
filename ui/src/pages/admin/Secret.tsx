// Shows a secret that the server sends only once: a generated password, a token.
import { Copy } from "lucide-react";

import { useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { copyText } from "../../parts/CopyAs";
import { Dialog } from "../../parts/Dialog";
import parts from "../../parts/parts.module.css";

export interface SecretText {
  title: string;
  /** The purpose of the secret. */
  text: string;
  secret: string;
}

export function SecretDialog({ title, text, secret, onClose }: SecretText & { onClose: () => void }) {
  const t = useText();
  return (
    <Dialog
      title={title} onClose={onClose}
      foot={
        <>
          <Button look="primary" onPress={() => void copyText(secret)}><Copy size={14} aria-hidden /> {t("admin.copySecret")}</Button>
          <Button onPress={onClose}>{t("common.close")}</Button>
        </>
      }
    >
      <p>{text}</p>
      <code className={parts.code}>{secret}</code>
    </Dialog>
  );
}
