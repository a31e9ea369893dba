import type { Writable } from 'node:stream';

/** Writes pieces in order, waits for a slow reader, and stops when the reader has closed the stream (`| head`). */
export async function print(stream: Writable, pieces: Iterable<string>): Promise<void> {
  for (const piece of pieces) {
    if (stream.destroyed || stream.errored) return;
    if (!stream.write(piece)) await canGoOn(stream);
  }
}

function canGoOn(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const names = ['drain', 'close', 'error'] as const;
    const done = (): void => {
      for (const name of names) stream.off(name, done);
      resolve();
    };
    for (const name of names) stream.once(name, done);
  });
}

/** Formats rows as left-aligned columns, separated by two spaces. Cells must be safe to print. */
export function table(rows: readonly (readonly string[])[], width: (text: string) => number): string {
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const widths = Array.from({ length: columns }, (_, index) => widest(rows, index, width));
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** Width of the widest cell of a column. A loop: a server can send more rows than a call can have arguments. */
export function widest(
  rows: readonly (readonly string[])[],
  index: number,
  width: (text: string) => number,
): number {
  let most = 0;
  for (const row of rows) most = Math.max(most, width(row[index] ?? ''));
  return most;
}
