// A state as a coloured square with its glyph, alone or with its word.
import { useLanguage } from "../i18n";
import { GLYPHS, stateColour, stateInk, stateOf, stateWord } from "./states";
import styles from "./state.module.css";

interface IconProps {
  state: string | null | undefined;
  size?: number;
  /** Hides the word from screen readers, where it stands beside the icon. */
  decorative?: boolean;
}

export function StateIcon({ state, size = 16, decorative = false }: IconProps) {
  useLanguage();
  const known = stateOf(state);
  const glyph = GLYPHS[known];
  const word = stateWord(state);
  const pale = known === "removed" || known === "none";
  return (
    <svg
      width={size} height={size} viewBox="0 0 16 16" className={styles.icon}
      {...(decorative ? { "aria-hidden": true } : { role: "img", "aria-label": word })}
    >
      {!decorative && <title>{word === known ? word : `${word} (${state ?? "none"})`}</title>}
      <rect
        x="0.75" y="0.75" width="14.5" height="14.5" rx="3.5" fill={stateColour(known)}
        stroke={pale ? "var(--edge)" : "rgb(0 0 0 / 0.18)"} strokeWidth="1" strokeDasharray={known === "removed" ? "2 1.6" : undefined}
      />
      <path
        d={glyph.d} fill={glyph.fill ? stateInk(known) : "none"} stroke={glyph.fill ? "none" : stateInk(known)}
        strokeWidth="1.9" strokeLinecap="round" strokeLinejoin="round"
      />
    </svg>
  );
}

/** Icon and word, in a chip. */
export function StateChip({ state, count }: { state: string | null | undefined; count?: string }) {
  useLanguage();
  return (
    <span className={styles.chip}>
      <StateIcon state={state} decorative />
      {stateWord(state)}
      {count !== undefined && <b className="figures">{count}</b>}
    </span>
  );
}
