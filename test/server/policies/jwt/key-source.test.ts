import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompileContext } from '../../../../src/server/kernel/compile-context.ts';
import {
  type Jwks,
  keySource,
  reportKeySetProblems,
  reportMetadataProblems,
  watchedDocument,
} from '../../../../src/server/policies/jwt/key-source.ts';
import { DocumentClient } from '../../../../src/server/transport/upstream/document-client.ts';
import { temporaryFolder } from '../../../kit/folder.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

type Report = (source: Jwks, context: CompileContext) => void;

/** What is reported of a document, as `code message`. */
function problems(report: Report, source: Jwks): string[] {
  const found: string[] = [];
  const context: Pick<CompileContext, 'folder' | 'at' | 'report'> = {
    folder: folder.path,
    at: () => context as CompileContext,
    report: ({ code, message, help }) => found.push(`${code} ${message} (${help})`),
  };
  report(source, context as CompileContext);
  return found;
}

async function file(name: string, text: string): Promise<{ file: string }> {
  await writeFile(join(folder.path, name), text);
  return { file: name };
}

/** JSON of a document of the kind, and texts that are JSON of something else. */
const KINDS = [
  {
    kind: 'a key set',
    report: reportKeySetProblems as Report,
    good: ['{"keys":[]}', '{"keys":[{"kty":"RSA"}]}'],
    bad: ['null', '[]', '5', '"keys"', '{}', '{"keys":null}', '{"keys":{}}', '{"keys":"x"}', '[{"keys":[]}]'],
    missing: 'has no `keys` list',
    name: 'key set',
    effect: 'no token could be validated',
  },
  {
    kind: 'metadata',
    report: reportMetadataProblems as Report,
    good: ['{"issuer":"https://idp.example"}'],
    bad: ['null', '[]', '5', '"issuer"', '{}', '{"issuer":null}', '{"issuer":["x"]}', '{"issuer":5}'],
    missing: 'has no `issuer`',
    name: 'metadata',
    effect: 'nobody could sign in',
  },
];

describe.each(KINDS)('$kind', ({ report, good, bad, missing, name, effect }) => {
  test('in the configuration or in a file has no problem', async () => {
    for (const text of good) {
      expect(problems(report, text)).toEqual([]);
      expect(problems(report, await file('good.json', text))).toEqual([]);
    }
    expect(problems(report, { url: 'https://idp.example/document' })).toEqual([]);
  });

  test('that is other JSON is an error that names the member, and the path of a file', async () => {
    for (const text of bad) {
      expect(problems(report, text)).toEqual([
        `AGW0104 the ${name} ${missing} (set it to JSON text, or use \`url:\` or \`file:\`)`,
      ]);
      expect(problems(report, await file('bad.json', text))).toEqual([
        expect.stringContaining(`AGW0104 ${join(folder.path, 'bad.json')} ${missing}; ${effect}`),
      ]);
    }
  });

  test('that is no JSON is an error', async () => {
    expect(problems(report, '{keys:')).toEqual([
      `AGW0104 the ${name} is not valid JSON (set it to JSON text, or use \`url:\` or \`file:\`)`,
    ]);
    expect(problems(report, await file('text.json', '{keys:'))).toEqual([
      expect.stringMatching(new RegExp(`^AGW0104 .*JSON.*; ${effect}`, 's')),
    ]);
  });

  test('in a file that does not exist is reported with the places that were searched', () => {
    const [problem, ...others] = problems(report, { file: 'nowhere.json' });
    expect(others).toEqual([]);
    expect(problem).toMatch(/^AGW0107 file not found: .*nowhere\.json/);
    expect(problem).toContain(`; ${effect}`);
  });
});

describe('the source of a key set', () => {
  const client = new DocumentClient();

  test('in the configuration never expires, and rejects if it is no JSON', async () => {
    const keys = await keySource('{"keys":[]}', folder.path, client)();
    expect(keys).toEqual({ value: { keys: [] }, lifetime: Number.POSITIVE_INFINITY });
    await expect(keySource('{keys:', folder.path, client)()).rejects.toThrow('is not valid JSON');
    expect((await keySource('null', folder.path, client)()).value).toBeNull();
  });

  test('in a file is read again at each call', async () => {
    const source = keySource(await file('changed.json', '{"keys":[1]}'), folder.path, client);
    expect((await source()).value).toEqual({ keys: [1] });
    await file('changed.json', '{"keys":[2]}');
    expect((await source()).value).toEqual({ keys: [2] });
  });

  test('is watched if it is a file', () => {
    const changed = (): undefined => undefined;
    for (const jwks of [undefined, '{"keys":[]}', { url: 'https://idp.example/keys' }])
      expect(watchedDocument(jwks, folder.path, changed)).toEqual([]);
    expect(watchedDocument({ file: 'keys.json' }, folder.path, changed)).toEqual([
      { file: join(folder.path, 'keys.json'), changed },
    ]);
  });
});
