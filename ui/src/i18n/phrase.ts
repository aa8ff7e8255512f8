/** A sentence of the server as a code and its arguments. */
export interface Phrase {
  code: string;
  arguments: Record<string, string | number | Phrase | (string | Phrase)[]>;
}

/** Code of a phrase → its English template: `marked {state} by {actor}`. */
export type Templates = Readonly<Record<string, string>>;
