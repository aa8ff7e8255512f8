// The frame of a page: a header that stays, a toolbar, and a body that scrolls.
import type { ReactNode } from "react";
import { useEffect } from "react";

import styles from "./page.module.css";

interface Props {
  title: ReactNode;
  /** The title of the browser's tab; the default is `title`, if it is a text. */
  name?: string;
  /** Above or before the title: links to what contains this page. */
  crumbs?: ReactNode;
  /** Under the title: facts in one line. */
  facts?: ReactNode;
  actions?: ReactNode;
  tabs?: ReactNode;
  toolbar?: ReactNode;
  /** `fill`: the body does not scroll itself; its content fills it. */
  fill?: boolean;
  children: ReactNode;
}

/** A longer title is written smaller, and on several lines. */
const LONG = 80;

export function Page({ title, name, crumbs, facts, actions, tabs, toolbar, fill = false, children }: Props) {
  const text = name ?? (typeof title === "string" ? title : "");
  useEffect(() => {
    document.title = text ? `${text} · Tradewind` : "Tradewind";
  }, [text]);
  return (
    <div className={styles.page}>
      <header className={styles.head} data-tabs={tabs ? "" : undefined}>
        <div className={styles.top}>
          <div className={styles.titles}>
            <div className={styles.title}>
              {crumbs && <span className={styles.crumbs}>{crumbs}</span>}
              <h1 title={text} data-long={text.length > LONG || undefined}>{title}</h1>
            </div>
            {facts && <div className={styles.facts}>{facts}</div>}
          </div>
          {actions && <div className={styles.actions}>{actions}</div>}
        </div>
        {tabs}
      </header>
      {toolbar && <div className={styles.toolbar}>{toolbar}</div>}
      <div className={fill ? styles.fill : styles.body}>{children}</div>
    </div>
  );
}

/** A part of a page with a title. */
export function Section({ title, more, children }: { title: ReactNode; more?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <header className={styles.sectionHead}>
        <h2>{title}</h2>
        {more}
      </header>
      {children}
    </section>
  );
}

export function Slash() {
  return <span className="muted" aria-hidden>/</span>;
}
