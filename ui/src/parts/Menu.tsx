import type { ReactElement, ReactNode } from "react";
import { Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from "react-aria-components";

import styles from "./parts.module.css";

export interface MenuEntry {
  id: string;
  label: string;
  icon?: ReactNode;
  /** Shown at the end of the line: a key, a mark. */
  end?: ReactNode;
  disabled?: boolean;
  onAction: () => void;
}

/** A menu that opens from a button. */
export function Menu({ label, entries, children }: { label: string; entries: readonly MenuEntry[]; children: ReactElement }) {
  return (
    <MenuTrigger>
      {children}
      <Popover className={styles.popover ?? ""} offset={4}>
        <AriaMenu aria-label={label}>
          {entries.map((one) => (
            <MenuItem key={one.id} id={one.id} textValue={one.label} className={styles.option ?? ""} isDisabled={one.disabled ?? false} onAction={one.onAction}>
              {one.icon}
              <span className="cut">{one.label}</span>
              {one.end && <span className={styles.end}>{one.end}</span>}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
