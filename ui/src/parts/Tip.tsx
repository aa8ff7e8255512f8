import type { ReactElement } from "react";
import { Tooltip, TooltipTrigger } from "react-aria-components";

import styles from "./parts.module.css";

/** A tooltip for a control. It only repeats or explains: no information is in a tooltip alone. */
export function Tip({ text, children }: { text: string; children: ReactElement }) {
  return (
    <TooltipTrigger delay={500}>
      {children}
      <Tooltip className={styles.tooltip ?? ""} offset={6}>
        {text}
      </Tooltip>
    </TooltipTrigger>
  );
}
