/** A file with lines such as `NAME=value`, with one of them set, or removed if there is no value. */
export function envLineSet(text: string, path: readonly string[], value: unknown): string {
  const name = path.at(-1) ?? '';
  const own = new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`);
  const lines = text.split('\n');
  const at = lines.findIndex((line) => own.test(line));
  // A later line would win over the one that is set.
  const others = lines.filter((line, index) => index === at || !own.test(line));
  if (value === undefined) return others.filter((_, index) => index !== at).join('\n');
  const line = `${name}=${String(value)}`;
  if (at !== -1) return others.map((each, index) => (index === at ? line : each)).join('\n');
  return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${line}\n`;
}
