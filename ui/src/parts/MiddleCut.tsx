// A name that is cut in its middle where there is too little room: names of one group often differ only at the end.

/** Characters at the end that are always shown. */
const TAIL = 6;

export function MiddleCut({ text }: { text: string }) {
  if (text.length <= 2 * TAIL) return <span className="cut">{text}</span>;
  return (
    <span className="middle">
      <span className="cut">{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </span>
  );
}
