// Code with line numbers, colours, folds and search (Ctrl F); read-only.
import { useEffect, useMemo, useRef, useState } from "react";

import { useText } from "../../i18n";
import { Loading } from "../../parts/status";
import type { CodeHandle } from "./editor";
import styles from "./code.module.css";

interface Props {
  text: string;
  python?: boolean;
  original?: string | null;
  label: string;
  line?: number | null;
  error?: { line: number; text: string } | null;
  onLine: (line: number) => void;
}

export function CodeView({ text, python = false, original = null, label, line = null, error = null, onLine }: Props) {
  const t = useText();
  const phrases = useMemo(() => ({
    Find: t("code.find"), next: t("code.findNext"), previous: t("code.findPrevious"), all: t("code.findAll"), "match case": t("code.matchCase"), regexp: t("code.regexp"),
    "by word": t("code.byWord"), close: t("common.close"), "$ unchanged lines": t("code.unchanged", { count: "$" }),
  }), [t]);
  const host = useRef<HTMLDivElement>(null);
  const handle = useRef<CodeHandle | null>(null);
  const latest = useRef({ line, onLine });
  const [ready, setReady] = useState(false);
  useEffect(() => {
    latest.current = { line, onLine };
    handle.current?.mark(line);
  }, [line, onLine]);
  const errorLine = error?.line ?? 0, errorText = error?.text ?? "";
  useEffect(() => {
    let wanted = true;
    void import("./editor").then(({ showCode }) => {
      if (!wanted || !host.current) return;
      handle.current = showCode({
        host: host.current, text, python, original, label, phrases, line: latest.current.line, error: errorLine ? { line: errorLine, text: errorText } : null,
        onLine: (one) => latest.current.onLine(one),
      });
      setReady(true);
    });
    return () => {
      wanted = false;
      handle.current?.destroy();
      handle.current = null;
    };
  }, [text, python, original, label, phrases, errorLine, errorText]);
  return (
    <div className={styles.view}>
      {!ready && <Loading lines={12} />}
      {/* Letters typed into its search field are no keys of the page. */}
      <div ref={host} className={styles.host} onKeyDown={(event) => !(event.ctrlKey || event.metaKey) && event.key !== "Escape" && event.stopPropagation()} />
    </div>
  );
}
