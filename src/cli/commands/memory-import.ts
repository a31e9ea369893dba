import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import { counted } from '../../core/render/counted.ts';
import type { Context, Run } from '../context.ts';
import { membersIn, type RestOptions, request, unexpected } from '../memory/rest.ts';

interface Options extends RestOptions {
  readonly operands: readonly string[];
}

interface Batch {
  readonly lines: string[];
  bytes: number;
  /** Number of the first line, from 1. */
  first: number;
}

/** Stores the lines of an export, or of memory.jsonl of server-memory, in batches; what is stored already is skipped. */
export const run: Run<Options> = async ({ operands: [file = '-'], ...options }, context) => {
  const total = { stored: 0, unchanged: 0 };
  const send = async ({ lines, first }: Batch): Promise<void> => {
    if (lines.length === 0) return;
    try {
      const body = { type: 'application/x-ndjson', text: lines.join('\n') };
      const { stored, unchanged } = await membersIn(await request(options, context, '/import', body));
      if (typeof stored !== 'number' || typeof unchanged !== 'number') throw unexpected();
      total.stored += stored;
      total.unchanged += unchanged;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      // Lines are counted from the beginning of the batch by the backend.
      const message = error.message.replace(/\bline (\d+)/, (_, line) => `line ${first - 1 + Number(line)}`);
      throw new CommandError(
        error.exit,
        `${message}; ${first === 1 ? 'nothing was stored' : `the first ${counted(first - 1, 'line')} of the file are stored`}`,
        'correct the cause and repeat the command: what is stored already is skipped',
      );
    }
  };
  const batch: Batch = { lines: [], bytes: 0, first: 1 };
  for await (const line of linesOf(file, context)) {
    const bytes = Buffer.byteLength(line);
    const isFull =
      batch.lines.length >= MEMORY_API_LIMITS.importLines ||
      batch.bytes + bytes > MEMORY_API_LIMITS.importBatch;
    if (isFull && batch.lines.length > 0) {
      await send(batch);
      batch.first += batch.lines.length;
      batch.lines.length = 0;
      batch.bytes = 0;
    }
    batch.lines.push(line);
    batch.bytes += bytes;
  }
  await send(batch);
  context.stderr.write(`stored ${total.stored}, unchanged ${total.unchanged}\n`);
  return EXIT_CODES.ok.code;
};

/** Reads a file, or stdin for `-`, line by line. A line longer than a request may be is an error, not a buffer. */
async function* linesOf(file: string, { cwd }: Context): AsyncGenerator<string> {
  const path = resolve(cwd, file);
  const input =
    file === '-' ? process.stdin.setEncoding('utf8') : createReadStream(path, { encoding: 'utf8' });
  let rest = '';
  let number = 1;
  try {
    for await (const chunk of input as AsyncIterable<string>) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        yield line;
        number += 1;
      }
      if (rest.length > MEMORY_API_LIMITS.importBytes)
        throw new CommandError(
          'usage',
          `${file}: line ${number} is longer than ${MEMORY_API_LIMITS.importBytes} bytes`,
        );
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError('usage', `cannot read ${file === '-' ? 'stdin' : path}: ${messageOf(error)}`);
  }
  if (rest !== '') yield rest;
}
