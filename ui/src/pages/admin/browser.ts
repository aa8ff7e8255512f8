// The name of a browser and its operating system, from its User-Agent text. Pure.

/** The first match is used: Edge and Opera also call themselves Chrome, and all of them Safari. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\/(\d+)/, "Edge"], [/\bOPR\/(\d+)/, "Opera"], [/\b(?:Firefox|FxiOS)\/(\d+)/, "Firefox"],
  [/\b(?:HeadlessChrome|Chrome|CriOS)\/(\d+)/, "Chrome"], [/\bVersion\/(\d+)[\d.]* .*Safari\//, "Safari"], [/\bcurl\/(\d+)/, "curl"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\bAndroid\b/, "Android"], [/\b(?:iPhone|iPad)\b/, "iOS"], [/\bWindows\b/, "Windows"], [/\bMac OS X\b/, "macOS"], [/\bCrOS\b/, "ChromeOS"], [/\bLinux\b/, "Linux"],
];

/** `Chrome 156 · Linux`; a text in another format is not changed. */
export function browserName(agent: string): string {
  const known = BROWSERS.map(([pattern, name]) => [pattern.exec(agent)?.[1], name] as const).find(([version]) => version !== undefined);
  if (!known) return agent;
  const system = SYSTEMS.find(([pattern]) => pattern.test(agent))?.[1];
  return [`${known[1]} ${known[0] ?? ""}`, system].filter(Boolean).join(" · ");
}
