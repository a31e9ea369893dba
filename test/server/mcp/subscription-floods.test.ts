import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import type { EventReader } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, openSession } from '../../kit/mcp.ts';
import { modern, modernEvents, modernUpstream } from '../../kit/modern.ts';

const limits = { subscriptions: 5, subscriptionCharacters: 1_000 };
const uri = (index: number): string => `file:///${index}`;
const long = (index: number): string => `file:///${index}/${'x'.repeat(300)}`;

const own = (): Json => chaos('a', '--resources=file:///1');

/** Targets for which the gateway itself keeps subscriptions. */
const TARGETS: [string, (host: string) => Json][] = [
  ['a shared stdio target', () => ({ name: 'a', stdio: { ...own().stdio, shared: true } })],
  ['a target of revision 2026-07-28', (host) => ({ name: 'a', mcp: { host } })],
];

describe('floods of subscriptions', () => {
  test.each(TARGETS)(
    'resources/subscribe over the limits is answered with an error, and room is made by resources/unsubscribe: %s',
    async (_what, target) => {
      await using up = await modernUpstream('a');
      await using gate = await gateway(mcpConfig([target(up.url)]), { limits });
      const session = await openSession(`${gate.url}/mcp`);
      const subscribe = async (to: string): Promise<string | undefined> =>
        (await session.request('resources/subscribe', { uri: to })).error?.message;
      for (let index = 0; index < 5; index += 1) expect(await subscribe(uri(index))).toBeUndefined();
      expect(await subscribe(uri(5))).toBe('more than 5 subscriptions');
      expect(await subscribe(uri(4))).toBeUndefined();
      for (let index = 1; index < 5; index += 1)
        await session.request('resources/unsubscribe', { uri: uri(index) });
      for (let index = 0; index < 3; index += 1) expect(await subscribe(long(index))).toBeUndefined();
      expect(await subscribe(long(3))).toBe('subscriptions to URIs of more than 1000 characters altogether');
      expect((await session.request('tools/list')).error).toBeUndefined();
    },
  );

  test('subscriptions of a child process that are too many or too long are forwarded, but not repeated after a restart', async () => {
    await using gate = await gateway(mcpConfig([own()]), { limits });
    const session = await openSession(`${gate.url}/mcp`);
    const uris = [...Array.from({ length: 7 }, (_, index) => uri(index)), `file:///${'x'.repeat(1_000)}`];
    for (const each of uris)
      expect((await session.request('resources/subscribe', { uri: each })).error).toBeUndefined();
    await session.request('tools/call', { name: 'die', arguments: {} });
    const repeated = async (): Promise<string[]> => {
      const { result } = await session.request('tools/call', { name: 'received', arguments: {} });
      // The call fails as long as the process has not been restarted.
      const lines: string[] = JSON.parse(result?.content[0].text ?? '[]');
      const messages: Json[] = lines.map((line) => JSON.parse(line));
      return messages
        .filter(({ method }) => method === 'resources/subscribe')
        .map(({ params }) => params.uri);
    };
    await expect.poll(repeated, { timeout: 10_000 }).toEqual([2, 3, 4, 5, 6].map(uri));
  });

  test.each([
    ['too many resources', [0, 1, 2, 3, 4, 5].map(uri), 'more than 5 subscriptions'],
    [
      'too long names of resources',
      [0, 1, 2, 3].map(long),
      'subscriptions to URIs of more than 1000 characters altogether',
    ],
  ])('subscriptions/listen with %s is answered with an error', async (_what, resourceSubscriptions, text) => {
    await using gate = await gateway(mcpConfig([own()]), { limits });
    const { error } = await modern(`${gate.url}/mcp`, 'subscriptions/listen', {
      notifications: { resourceSubscriptions },
    });
    expect(error.message).toBe(text);
  });

  test('callers who cannot be told apart have as many subscriptions/listen streams as sessions, and a further one is an error', async () => {
    await using gate = await gateway(mcpConfig([own()]), {
      limits: { ...limits, inFlightPerSession: 2, sessions: 4 },
    });
    const url = `${gate.url}/mcp`;
    const listen = { notifications: { toolsListChanged: true } };
    const streams: EventReader[] = [];
    for (let id = 0; id < 4; id += 1) {
      const stream = await modernEvents(url, 'subscriptions/listen', listen, { id });
      await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged');
      streams.push(stream);
    }
    const { error } = await modern(url, 'subscriptions/listen', listen);
    expect(error.message).toBe('more than 4 subscriptions/listen requests of this client are open');
    for (const stream of streams) stream.close();
    await expect
      .poll(async () => {
        const stream = await modernEvents(url, 'subscriptions/listen', listen, { id: 5 });
        const [first] = [await stream.next(() => true)];
        stream.close();
        return first.method;
      })
      .toBe('notifications/subscriptions/acknowledged');
  });
});
