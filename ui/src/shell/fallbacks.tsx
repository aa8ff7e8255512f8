// Pages for an address that does not exist, and for a page that failed.
import { useLocation, useRouter, type ErrorComponentProps } from "@tanstack/react-router";
import { MapPinOff } from "lucide-react";
import { useEffect } from "react";

import { isMissing } from "../api/client";
import { useText } from "../i18n";
import { storedText } from "../i18n/phrases";
import { LinkButton } from "../parts/Button";
import { EmptyState, ErrorState } from "../parts/status";

export function NotFoundPage() {
  return <NotThere />;
}

/** `reason`: the message of the server about the missing object. */
function NotThere({ reason }: { reason?: string }) {
  const t = useText();
  const { pathname } = useLocation();
  useEffect(() => {
    document.title = `${t("shell.notFound")} · Tradewind`;
  }, [t]);
  return (
    <EmptyState icon={<MapPinOff size={28} />} title={t("shell.notFound")} level={1}>
      {reason && <p className="wrap">{reason}</p>}
      <p className="mono wrap">{decodeURI(pathname)}</p>
      <LinkButton to="/dags">{t("shell.dags")}</LinkButton>
    </EmptyState>
  );
}

/** In place of a page whose DAG, run or task instance does not exist (any more); of another error, the error. */
export function MissingPage(props: ErrorComponentProps) {
  const { error } = props;
  return isMissing(error) ? <NotThere reason={storedText(error.message)} /> : <RouteError {...props} />;
}

/** A file of the page that could not be loaded: the server is away, or was upgraded and has other files now. */
const LOST_FILE = /preload CSS|dynamically imported module|Importing a module script failed/;

export function RouteError({ error, reset }: ErrorComponentProps) {
  const t = useText();
  const router = useRouter();
  if (error instanceof Error && LOST_FILE.test(error.message)) return <ErrorState error={new Error(t("shell.lostFile"))} retry={() => location.reload()} />;
  return (
    <ErrorState
      error={error}
      retry={() => {
        reset();
        void router.invalidate();
      }}
    />
  );
}
