// How the slots of a pool are used, as a bar: running, queued, deferred, open.
import { formatNumber, useText } from "../../i18n";
import styles from "./pools.module.css";

export interface PoolSlots {
  /** -1: unlimited. */
  slots: number;
  running: number;
  queued: number;
  deferred: number;
}

export function PoolBar({ slots, running, queued, deferred }: PoolSlots) {
  const t = useText();
  const used = running + queued + deferred;
  const whole = Math.max(slots < 0 ? used * 2 : slots, used, 1);
  const parts = [["running", running], ["queued", queued], ["deferred", deferred]] as const;
  const text = [
    slots < 0 ? t("pools.usedUnlimited", { used: formatNumber(used) }) : t("pools.used", { used: formatNumber(used), slots: formatNumber(slots) }),
    ...parts.filter(([, count]) => count > 0).map(([name, count]) => t(`pools.${name}`, { count })),
  ].join(" · ");
  return (
    <span className={styles.bar} role="img" aria-label={text} title={text}>
      {parts.map(([name, count]) => count > 0 && <i key={name} data-part={name} style={{ width: `${(100 * count) / whole}%` }} />)}
    </span>
  );
}
