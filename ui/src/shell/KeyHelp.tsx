import { useText } from "../i18n";
import { Dialog } from "../parts/Dialog";
import parts from "../parts/parts.module.css";
import { StateIcon } from "../state/StateIcon";
import { STATES, stateWord } from "../state/states";
import { shownKeys } from "./keys";
import styles from "./shell.module.css";

/** All keys of the page that is open, and all states with their colours, glyphs and Airflow's own words. */
export default function KeyHelp({ onClose }: { onClose: () => void }) {
  const t = useText();
  return (
    <Dialog title={t("shell.keyHelp")} onClose={onClose}>
      <dl className={parts.definition}>
        {shownKeys().map((one) => (
          <div key={one.key + one.what} style={{ display: "contents" }}>
            <dt>{one.key.split(" ").map((key) => <kbd key={key} className={parts.key}>{key}</kbd>)}</dt>
            <dd>{t(one.what)}</dd>
          </div>
        ))}
      </dl>
      <h3 className={styles.legendTitle}>{t("shell.states")}</h3>
      <ul className={styles.legend} aria-label={t("shell.states")}>
        {STATES.map((state) => (
          <li key={state}>
            <StateIcon state={state} decorative />
            <span>{stateWord(state)}</span>
            <code className="mono muted">{state === "none" ? "null" : state}</code>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
