import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { DocumentClient } from '../../../src/server/transport/upstream/document-client.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

test('connections to a few hosts are kept, and to the least recently used one closed', async () => {
  const client = new DocumentClient();
  const servers = await Promise.all(
    Array.from({ length: LIMITS.providerOrigins + 1 }, () =>
      httpUpstream((_, response) => response.end('{}')),
    ),
  );
  const fetchFrom = async (few: readonly HttpUpstream[]): Promise<void> => {
    for (const { address } of few) await client.fetch(`http://${address}/`, 100);
  };
  await fetchFrom(servers.slice(0, -1));
  await fetchFrom(servers.slice(0, 1));
  await fetchFrom(servers.slice(-1));
  await fetchFrom(servers.slice(0, 2));
  expect(servers.slice(0, 3).map(({ connections }) => connections)).toEqual([1, 2, 1]);
  await client.close();
  await Promise.all(servers.map((server) => server.close()));
});
