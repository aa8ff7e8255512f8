// Messages instead of the content of a page, or above it: no rows, an error, loading.
import { CircleAlert, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

import { ApiError } from "../api/client";
import { t, useText } from "../i18n";
import { refusedFields, refusedText } from "../i18n/refused";
import { Button } from "./Button";
import styles from "./parts.module.css";

/** `level` 1: nothing else on the page has a heading. */
export function EmptyState({ icon, title, level = 2, children }: { icon?: ReactNode; title: string; level?: 1 | 2; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      {icon}
      {level === 1 ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
    </div>
  );
}

/** The sentence of an error, for a person. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.status === 0) return t("common.unreachable");
    return Object.keys(error.fields).length > 0 ? refusedFields(error.fields) : refusedText(error.message);
  }
  return error instanceof Error ? error.message : String(error);
}

/** Field → why its value was refused, in the language that is shown. */
export function fieldErrors(error: unknown): Readonly<Record<string, string>> {
  const fields = error instanceof ApiError ? error.fields : {};
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, refusedText(text)]));
}

export function ErrorState({ error, retry }: { error: unknown; retry?: () => void }) {
  useText();
  const id = error instanceof ApiError ? error.requestId : "";
  return (
    <div className={styles.errorBox} role="alert">
      <CircleAlert size={16} aria-hidden />
      <div className="grow">
        <p>{errorText(error)}</p>
        {id && <p className="muted small">{t("common.requestId", { id })}</p>}
      </div>
      {retry && (
        <Button compact onPress={retry}>
          {t("common.retry")}
        </Button>
      )}
    </div>
  );
}

export function Notice({ children }: { children: ReactNode }) {
  return (
    <div className={styles.notice}>
      <TriangleAlert size={14} aria-hidden />
      <div className="grow">{children}</div>
    </div>
  );
}

/** A frame of about the final size; it appears after 200 ms. */
export function Loading({ lines = 8 }: { lines?: number }) {
  useText();
  return (
    <div className={styles.loading} role="status" aria-label={t("common.loading")}>
      {Array.from({ length: lines }, (_, at) => (
        <i key={at} style={{ width: `${[92, 78, 86, 64, 88, 72][at % 6]}%` }} />
      ))}
    </div>
  );
}

/** The content of a query: an error above the old data, a frame while there is none. */
export function Loaded<T>({ query, children, lines }: {
  query: { data: T | undefined; error: unknown; refetch: () => unknown };
  children: (data: T) => ReactNode;
  lines?: number;
}) {
  return (
    <>
      {query.error !== null && query.error !== undefined && <ErrorState error={query.error} retry={() => void query.refetch()} />}
      {query.data !== undefined ? children(query.data) : query.error ? null : <Loading {...(lines ? { lines } : {})} />}
    </>
  );
}
