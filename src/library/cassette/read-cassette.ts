import { readFileSync, statSync } from 'node:fs';
import type { z } from 'zod';
import { pathText } from '../../core/diagnostic.ts';
import { messageOf } from '../../core/errors.ts';
import { isRecord } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { parseExactly } from '../../server/llm/chat/exact-json.ts';
import { type Cassette, type Exchange, FORMAT, schemas } from './format.ts';

/** A file that is not a cassette. The message begins with the file and, if it is about a line, its number. */
export class CassetteError extends Error {
  constructor(file: string, line: number | undefined, problem: string) {
    super(`${file}${line === undefined ? '' : `:${line}`}: ${problem}`);
    this.name = 'CassetteError';
  }
}

/** Reads a cassette. @throws CassetteError */
export function readCassette(file: string): Cassette {
  let text: string;
  try {
    const { size } = statSync(file);
    if (size > LIMITS.cassetteBytes)
      throw new CassetteError(file, undefined, `it is larger than ${LIMITS.cassetteBytes} bytes`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof CassetteError) throw error;
    throw new CassetteError(file, undefined, `it cannot be read: ${messageOf(error)}`);
  }
  return parseCassette(text, file);
}

/** The cassette of a text; `file` is for messages. @throws CassetteError */
export function parseCassette(text: string, file: string): Cassette {
  const lines = text.split('\n');
  const isComplete = lines.at(-1) === '';
  if (isComplete) lines.pop();
  const [first = '', ...rest] = lines;
  const head = check(schemas.head, headValue(first, file), file, 1);
  const names = new Set(head.gateways.map(({ name }) => name));
  const exchanges = rest.map((content, index): Exchange => {
    const line = index + 2;
    const value = parseExactly(content);
    if (value === undefined)
      throw new CassetteError(
        file,
        line,
        !isComplete && line === lines.length
          ? 'the line is not complete: the recording was killed; remove the line'
          : 'expected the JSON of one exchange',
      );
    const exchange = check(schemas.exchange, value, file, line);
    if (!names.has(exchange.gateway))
      throw new CassetteError(file, line, `\`gateway\`: line 1 has no gateway \`${exchange.gateway}\``);
    return { ...exchange, line };
  });
  return { file, head, exchanges: exchanges.toSorted((a, b) => a.at - b.at || a.line - b.line) };
}

function headValue(line: string, file: string): unknown {
  const value = parseExactly(line);
  if (!isRecord(value) || !('cassette' in value))
    throw new CassetteError(file, 1, 'expected the first line of a cassette: {"cassette":1,…}');
  if (value['cassette'] !== FORMAT)
    throw new CassetteError(
      file,
      1,
      `the format is ${JSON.stringify(value['cassette'])}, and this version of agctl reads ${FORMAT}`,
    );
  return value;
}

function check<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  file: string,
  line: number,
): z.infer<Schema> {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  const [issue] = error.issues;
  const at = pathText((issue?.path ?? []).map((each) => (typeof each === 'symbol' ? '' : each)));
  throw new CassetteError(file, line, `${at === '' ? '' : `\`${at}\`: `}${issue?.message ?? 'not valid'}`);
}
