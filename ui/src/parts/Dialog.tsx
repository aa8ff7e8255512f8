// Dialogs and side sheets. They return the focus to the control that opened them, and close with Escape.
import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";

import { t } from "../i18n";
import { Button } from "./Button";
import styles from "./parts.module.css";

interface Props {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  foot?: ReactNode;
  wide?: boolean;
}

function Frame({ title, onClose, children, foot }: Omit<Props, "wide">) {
  return (
    <>
      <header className={styles.dialogHead}>
        <Heading slot="title" level={2}>
          {title}
        </Heading>
        <Button look="quiet" icon label={t("common.close")} onPress={onClose}>
          <X size={16} />
        </Button>
      </header>
      <div className={styles.dialogBody}>{children}</div>
      {foot && <footer className={styles.dialogFoot}>{foot}</footer>}
    </>
  );
}

export function Dialog({ wide = false, onClose, ...frame }: Props) {
  return (
    <ModalOverlay className={styles.overlay ?? ""} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal style={{ display: "contents" }}>
        <AriaDialog className={`${styles.dialog} ${wide ? styles.wide : ""}`}>
          <Frame onClose={onClose} {...frame} />
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** A form at the right edge, beside the list that it belongs to. */
export function SideSheet({ onClose, ...frame }: Omit<Props, "wide">) {
  return (
    <ModalOverlay className={styles.sheetOverlay ?? ""} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={styles.sheet ?? ""}>
        <AriaDialog>
          <Frame onClose={onClose} {...frame} />
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
