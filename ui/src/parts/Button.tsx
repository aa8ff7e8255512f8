// Buttons and links that look like them. A control that the user may not use stays visible, disabled, and its tooltip says why.
import type { ReactNode } from "react";
import { Link, type LinkProps } from "@tanstack/react-router";
import { Button as AriaButton, type PressEvent } from "react-aria-components";

import { Tip } from "./Tip";
import styles from "./parts.module.css";

export interface ButtonLook {
  look?: "plain" | "primary" | "quiet" | "danger";
  compact?: boolean;
  /** Only an icon: `label` is its name. */
  icon?: boolean;
}

export function buttonClass({ look = "plain", compact = false, icon = false }: ButtonLook): string {
  const found = [styles.button];
  if (look === "primary") found.push(styles.primary);
  if (look === "quiet") found.push(styles.quiet);
  if (look === "danger") found.push(styles.dangerous);
  if (compact) found.push(styles.compact);
  if (icon) found.push(styles.square);
  return found.join(" ");
}

interface Props extends ButtonLook {
  children: ReactNode;
  onPress?: (event: PressEvent) => void;
  /** Why the control cannot be used now; empty or undefined: it can be used. */
  refused?: string | null | undefined;
  /** The name of an icon button, shown as its tooltip. */
  label?: string;
  type?: "button" | "submit";
  pending?: boolean;
  autoFocus?: boolean;
  slot?: string;
  form?: string;
}

export function Button({ children, onPress, refused, label, type = "button", pending = false, autoFocus, slot, form, ...look }: Props) {
  const button = (
    <AriaButton
      className={buttonClass(look)} type={type} isPending={pending} {...(form ? { form } : {})} {...(slot ? { slot } : {})}
      {...(autoFocus ? { autoFocus } : {})} {...(label ? { "aria-label": label } : {})} {...(refused ? { "aria-disabled": true } : {})}
      onPress={(event) => {
        if (!refused) onPress?.(event);
      }}
    >
      {children}
    </AriaButton>
  );
  const tip = refused ?? (look.icon ? label : undefined);
  return tip ? <Tip text={tip}>{button}</Tip> : button;
}

/** A link of the router that looks like a button. */
export function LinkButton({ look, compact, icon, children, label, ...link }: LinkProps & ButtonLook & { children: ReactNode; label?: string }) {
  return (
    <Link {...(link as LinkProps)} className={buttonClass({ ...(look ? { look } : {}), ...(compact ? { compact } : {}), ...(icon ? { icon } : {}) })} aria-label={label}>
      {children}
    </Link>
  );
}
