// Light or dark: the system's, unless it was chosen here.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const STORED = "tradewind.theme";
const listeners = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");

export function themeChoice(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === "light" || stored === "dark" ? stored : "system";
}

function apply(): void {
  const choice = themeChoice();
  document.documentElement.dataset.theme = choice === "system" ? (system.matches ? "dark" : "light") : choice;
  listeners.forEach((one) => one());
}

export function setTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, theme);
  apply();
}

system.addEventListener("change", apply);

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, themeChoice);
}

/** The theme that is shown; for canvases, which draw with its colours. */
export function useShownTheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light"));
}
