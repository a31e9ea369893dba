import { expect, test } from 'vitest';
import { tokenFetch } from '../../../src/server/credentials/token-fetch.ts';
import { DocumentClient } from '../../../src/server/transport/upstream/document-client.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** What an OAuth library gets if a token endpoint answers with this. */
async function fetched(text: string, status = 200): Promise<{ status: number; text: string }> {
  await using server = await httpUpstream((_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(text),
  );
  const client = new DocumentClient();
  try {
    const url = `http://${server.address}/token`;
    const response = await tokenFetch(client)(url, { method: 'POST', headers: {}, body: 'grant_type=a' });
    return { status: response.status, text: await response.text() };
  } finally {
    await client.close();
  }
}

test.each([
  ['null', 200],
  ['[]', 200],
  ['[null]', 200],
  ['"text"', 200],
  ['7', 200],
  ['{"access_token":', 200],
  ['', 200],
  ['', 204],
  ['{"error":"invalid_grant","expires_in":null}', 400],
])('tokenFetch leaves %s with status %i as it is', async (text, status) => {
  expect(await fetched(text, status)).toEqual({ status, text });
});

test.each([
  ['{"access_token":"a","scope":null,"expires_in":60}', '{"access_token":"a","expires_in":60}'],
  ['{"expires_in":"60"}', '{"expires_in":60}'],
  ['{"expires_in":0.5}', '{"expires_in":0.5}'],
  ['{"expires_in":-1}', '{"expires_in":0}'],
  ['{"expires_in":"-1e999"}', '{"expires_in":0}'],
  ['{"expires_in":1e999}', '{"expires_in":86400}'],
  ['{"expires_in":86401}', '{"expires_in":86400}'],
  ['{"expires_in":null}', '{}'],
  ['{"expires_in":" "}', '{}'],
  ['{"expires_in":"soon"}', '{}'],
  ['{"expires_in":true}', '{}'],
  ['{"expires_in":[60]}', '{}'],
  ['{"expires_in":{}}', '{}'],
  ['{"access_token":"a"}', '{"access_token":"a"}'],
])('tokenFetch makes of the answer %s the answer %s', async (text, expected) => {
  expect(await fetched(text)).toEqual({ status: 200, text: expected });
});
