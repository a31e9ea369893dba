import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { env } from 'node:process';
import { afterAll, expect, test } from 'vitest';
import { type ChatFormat, type Json, Untranslatable } from '../../../../src/server/llm/chat/chat-format.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';

/** The formats of the cases, by their keys. */
export const FORMATS = ['completions', 'messages', 'responses'] as const;

export type Key = (typeof FORMATS)[number];

/** What a translation gives: a body, or the reason why there is none. */
export type Outcome = Json | { readonly refused: string; readonly why?: string };

/** A body of one format, and what it becomes in the others, by the keys of the formats. */
export interface Case {
  readonly name: string;
  readonly input: Json;
  readonly expected?: Readonly<Record<string, Outcome>>;
}

interface CaseFile<T> {
  readonly from: Key;
  readonly cases: readonly T[];
}

export function formatOf(key: string): ChatFormat {
  const format = chatFormats.find((each) => each.key === key);
  if (format === undefined) throw new Error(`no format ${key}`);
  return format;
}

/** The target of calls whose body has the model. */
export const TARGET = { model: 'some-model', stream: false };

/** The cases in the files of a folder. */
export function casesIn<T extends Case = Case>(folder: string): (CaseFile<T> & { readonly file: URL })[] {
  const directory = new URL(`${folder}/`, import.meta.url);
  return readdirSync(directory)
    .toSorted()
    .map((name) => {
      const file = new URL(name, directory);
      return { file, ...(JSON.parse(readFileSync(file, 'utf8')) as CaseFile<T>) };
    });
}

/**
 * Declares a test for each case in the files of a folder and each other format. `UPDATE_GOLDEN=1` writes what
 * `translate` gives into the files instead of comparing: format them (`npm run fix`) and review the difference.
 */
export function runCases<T extends Case>(
  folder: string,
  translate: (each: T, from: Key, to: Key) => Promise<Outcome>,
): void {
  const isUpdate = env['UPDATE_GOLDEN'] !== undefined;
  for (const { file, from, cases } of casesIn<T>(folder)) {
    const updated = cases.map((each) => ({ ...each, expected: {} as Record<string, Outcome> }));
    for (const [index, each] of cases.entries())
      for (const to of FORMATS)
        if (to !== from)
          test(`${folder}, ${from} to ${to}: ${each.name}`, async () => {
            const outcome = await translate(each, from, to);
            if (!isUpdate) expect(outcome).toEqual(each.expected?.[to]);
            else if (updated[index] !== undefined) updated[index].expected[to] = outcome;
          });
    if (isUpdate)
      afterAll(() => writeFileSync(file, `${JSON.stringify({ from, cases: updated }, null, 2)}\n`));
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
