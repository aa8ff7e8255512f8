// The address is the state: filters, folds, selections and options are parameters of the address, as plain text.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

export type Search = Record<string, string>;

export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function searchText(search: Record<string, unknown>): string {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) if (typeof value === "string" && value !== "") kept.set(name, value);
  const text = kept.toString();
  return text ? `?${text}` : "";
}

/** All parameters of the address. */
export function useAddress(): Search {
  return useSearch({ strict: false });
}

/** Changes parameters of the address; an empty value removes one. `push`: the back button returns to the former value. */
export function useSetAddress(): (changes: Search, push?: boolean) => void {
  const navigate = useNavigate();
  return useCallback(
    (changes, push = false) => {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-assignment -- all routes share one kind of parameters
      void navigate({ to: ".", search: ((old: Search) => ({ ...old, ...changes })) as any, replace: !push });
    },
    [navigate],
  );
}

/** One parameter of the address. */
export function useParam(name: string, fallback = ""): [string, (value: string) => void] {
  const value = useAddress()[name] ?? fallback;
  const set = useSetAddress();
  return [value, useCallback((wanted: string) => set({ [name]: wanted === fallback ? "" : wanted }), [set, name, fallback])];
}
