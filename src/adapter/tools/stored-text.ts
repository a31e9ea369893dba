// What is stored was written by anybody. In the text of a result it must not look like what a tool says itself, such as the heading of
// another passage (docs/decisions/0099).

/** Where a line ends for some reader: Unicode has more ends than `\n` (Unicode Standard, section 5.8). */
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

/** Stored text, each line of it marked as quoted. Nothing that a tool says itself begins like that. */
export function quoted(text: string): string {
  return text
    .split(LINE_END)
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n');
}

/** A stored name in one line. */
export function oneLine(name: string): string {
  return name.split(LINE_END).join(' ');
}
