/** Where a line begins, counted from 1. */
export function offsetOfLine(text: string, line: number): number {
  let at = 0;
  for (let count = 1; count < line; count += 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return at;
    at = end + 1;
  }
  return at;
}
