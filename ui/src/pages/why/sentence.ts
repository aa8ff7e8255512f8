// The moments in a sentence of the server, so that the page can show them in the chosen time zone. Pure.

const MOMENT = /(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2}))/;

/** The parts of a sentence in their order; `moment`: the text is one. A moment inside of a run id is a part of the id. */
export function partsOf(sentence: string): { text: string; moment: boolean }[] {
  const found: { text: string; moment: boolean }[] = [];
  for (const text of sentence.split(MOMENT)) {
    const before = found.at(-1);
    const moment = MOMENT.test(text) && !/[\w~-]$/.test(before?.text ?? "");
    if (text && before && !moment && !before.moment) before.text += text;
    else if (text) found.push({ text, moment });
  }
  return found;
}
