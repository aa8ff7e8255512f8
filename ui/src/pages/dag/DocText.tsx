// The documentation of a DAG or task: the usual parts of Markdown as elements, everything else as it was written.
import parts from "../../parts/parts.module.css";
import { blocksOf, type Span } from "./doc";
import styles from "./details.module.css";

export function DocText({ text }: { text: string }) {
  return (
    <div className={styles.doc}>
      {blocksOf(text).map((block, at) => {
        if (block.kind === "code") return <pre key={at} className={parts.code}>{block.text}</pre>;
        if (block.kind === "heading") return block.level < 3 ? <h3 key={at} className={styles.docTitle}><Spans spans={block.spans} /></h3> : <h4 key={at}><Spans spans={block.spans} /></h4>;
        if (block.kind === "list") {
          const items = block.items.map((item, place) => <li key={place}><Spans spans={item} /></li>);
          return block.ordered ? <ol key={at}>{items}</ol> : <ul key={at}>{items}</ul>;
        }
        if (block.kind === "table") {
          return (
            <div key={at} className={styles.scroll} tabIndex={0}>
              <table className={styles.table}>
                <thead><tr>{block.head.map((cell, place) => <th key={place}><Spans spans={cell} /></th>)}</tr></thead>
                <tbody>{block.rows.map((row, place) => <tr key={place}>{block.head.map((_, column) => <td key={column}><Spans spans={row[column] ?? []} /></td>)}</tr>)}</tbody>
              </table>
            </div>
          );
        }
        return <p key={at}><Spans spans={block.spans} /></p>;
      })}
    </div>
  );
}

function Spans({ spans }: { spans: readonly Span[] }) {
  return spans.map((one, at) => {
    if (one.kind === "link") return <a key={at} href={one.href} target="_blank" rel="noreferrer">{one.text}</a>;
    if (one.kind === "code") return <code key={at} className="mono">{one.text}</code>;
    if (one.kind === "bold") return <strong key={at}>{one.text}</strong>;
    if (one.kind === "italic") return <em key={at}>{one.text}</em>;
    return one.text;
  });
}
