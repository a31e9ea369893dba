import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testGateway } from '../../src/library/testing/index.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { httpUpstream } from '../kit/upstream.ts';

const SECRET = 'canarySimpleSecret123';
const PIECES = SECRET.match(/.{1,5}/g) ?? [];

/** Each piece of the secret in two texts of a stream, in turn. */
const inTwo = (event: (piece: string, index: number) => unknown): unknown[] =>
  PIECES.flatMap((piece) => [event(piece, 0), event(piece, 1)]);

/** What is recorded of a service that answers with these events. */
async function recorded(events: readonly unknown[]): Promise<unknown[]> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  await using upstream = await httpUpstream((_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    for (const event of events)
      response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
    response.end();
  });
  const policies = { backendAuth: { key: '$SECRET' } };
  const routes = [{ backends: [{ host: upstream.address, policies }] }];
  {
    const config = { gateways: { default: { port: 3000, routes } } };
    await using gateway = await testGateway(config, { record: file, env: { SECRET } });
    await (await fetch(gateway.url)).text();
  }
  const text = readFileSync(file, 'utf8');
  const [, line = ''] = text.trim().split('\n');
  const { response } = JSON.parse(line);
  return response.events.map((event: { json?: unknown; text?: string }) => event.json ?? event.text);
}

const STREAMS = {
  'choices of a completion': (content: string, index: number) => ({
    choices: [{ index, delta: { content } }],
  }),
  'parallel calls of tools': (piece: string, index: number) => ({
    choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: piece } }] } }],
  }),
  'blocks of a message': (text: string, index: number) => ({
    type: 'content_block_delta',
    index,
    delta: { type: 'text_delta', text },
  }),
  'items of a response': (delta: string, index: number) => ({
    type: 'response.output_text.delta',
    item_id: `item_${index}`,
    output_index: index,
    content_index: 0,
    delta,
  }),
  'items of a response without their index': (delta: string, index: number) => ({
    type: 'response.output_text.delta',
    item_id: `item_${index}`,
    delta,
  }),
};

test.each(Object.entries(STREAMS))('pieces of a secret in %s are redacted', async (_, event) => {
  const events = await recorded(inTwo(event));
  // Every text is where its first piece was, and the other pieces are empty.
  expect(events).toEqual(
    PIECES.flatMap((__, at) => [0, 1].map((index) => event(at === 0 ? '<redacted>' : '', index))),
  );
});

test('pieces of a secret in events that are texts are redacted, and other events stay', async () => {
  const events = await recorded(['a Cookie: abc', ...PIECES, 'end', '[DONE]']);
  expect(events.join('')).toBe('a Cookie: <redacted><redacted>end[DONE]');
  expect(events.at(-1)).toBe('[DONE]');
});

test('base64 with a secret at any place of its text is redacted, and other base64 stays', async () => {
  const harmless = Buffer.from('nothing to see here').toString('base64');
  const encoded = ['u:', 'me:', 'user:'].flatMap((before) =>
    (['base64', 'base64url'] as const).map((form) => Buffer.from(`${before}${SECRET}!`).toString(form)),
  );
  const texts = encoded.map((text) => `is x/${text} or ${harmless}`);
  const events = await recorded([{ texts }]);
  expect(events).toEqual([{ texts: texts.map(() => expect.stringMatching(/^is \S*<redacted>\S* or /)) }]);
  expect(JSON.stringify(events).split(harmless)).toHaveLength(encoded.length + 1);
});
