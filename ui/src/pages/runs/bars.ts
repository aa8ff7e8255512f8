// The scale of the bars of durations. Pure.

/** A run that takes longer than this many times the third quartile is an exception. */
const EXCEPTION = 2;

/**
 * The seconds that a full bar stands for: the longest duration, unless it is an exception. Then the bars of the other runs would be too short to
 * compare, so the bar of an exception is cut.
 */
export function fullBar(seconds: readonly number[]): number {
  const sorted = seconds.toSorted((a, b) => a - b);
  const longest = sorted.at(-1) ?? 0, quartile = sorted[Math.floor((sorted.length - 1) * 0.75)] ?? 0;
  return Math.max(0.001, quartile > 0 ? Math.min(longest, EXCEPTION * quartile) : longest);
}
