import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { env } from 'node:process';
import { expect, test } from 'vitest';
import {
  type CallTarget,
  type ChatFormat,
  type Json,
  Untranslatable,
} from '../../../../src/server/llm/translation/chat-format.ts';
import { chatFormats } from '../../../../src/server/llm/translation/index.ts';

/** What a translation gives: a body, or the reason why there is none. */
export type Outcome = Json | { readonly refused: string; readonly why?: string };

/** A body of one format, and what it becomes in the others, by the keys of the formats. */
export interface Case {
  readonly name: string;
  readonly input: Json;
  readonly expected?: Readonly<Record<string, Outcome>>;
}

/** What the URL of a call has in some formats. */
export const TARGET: CallTarget = { model: 'm-1', stream: false };

interface CaseFile<T> {
  readonly from: string;
  readonly cases: readonly T[];
}

export function formatOf(key: string): ChatFormat {
  const format = chatFormats.find((each) => each.key === key);
  if (format === undefined) throw new Error(`no format ${key}`);
  return format;
}

/**
 * Declares a test for each case in the files of a folder and each other format. `UPDATE_GOLDEN=1` writes what
 * `translate` gives into the files instead of comparing: format them (`npm run fix`) and review the difference.
 */
export function runCases<T extends Case>(
  folder: string,
  translate: (each: T, from: ChatFormat, to: ChatFormat) => Json,
): void {
  const directory = new URL(`${folder}/`, import.meta.url);
  for (const name of readdirSync(directory).toSorted()) {
    const file = new URL(name, directory);
    const { from, cases } = JSON.parse(readFileSync(file, 'utf8')) as CaseFile<T>;
    const targets = chatFormats.map(({ key }) => key).filter((key) => key !== from);
    const outcomes = (each: T) =>
      Object.fromEntries(
        targets.map((to) => [to, outcomeOf(() => translate(each, formatOf(from), formatOf(to)))]),
      );
    if (env['UPDATE_GOLDEN'] !== undefined) {
      const updated = cases.map((each) => ({ ...each, expected: outcomes(each) }));
      writeFileSync(file, `${JSON.stringify({ from, cases: updated }, null, 2)}\n`);
    }
    for (const each of cases)
      for (const to of targets)
        test(`${folder}, ${from} to ${to}: ${each.name}`, () => {
          if (env['UPDATE_GOLDEN'] === undefined) expect(outcomes(each)[to]).toEqual(each.expected?.[to]);
        });
  }
}

/** The result as it is on the wire, without undefined members. */
export function outcomeOf(translate: () => Json): Outcome {
  try {
    return JSON.parse(JSON.stringify(translate())) as Json;
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    return error.why === undefined ? { refused: error.what } : { refused: error.what, why: error.why };
  }
}
