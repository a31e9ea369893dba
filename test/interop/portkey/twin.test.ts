import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpUpstream, Received } from '../../kit/upstream.ts';
import { bodyIn, twinProvider } from '../litellm-proxy/twin-provider.ts';
import { CASES, type Case, type Part } from './cases.ts';
import { startImported, startPortkey } from './gateways.ts';

// One config object, sent to Portkey's gateway and imported by a gateway: providers must get the same calls.

const stack = new AsyncDisposableStack();
let provider: HttpUpstream;
let portkey: string;
let base: string;
beforeAll(async () => {
  provider = stack.use(await twinProvider());
  portkey = stack.use(await startPortkey()).url;
  base = `http://${provider.address}`;
}, 120_000);
afterAll(() => stack.disposeAsync());

interface Outcome {
  readonly statuses: readonly number[];
  readonly calls: readonly Readonly<Record<'path' | 'auth' | 'body', unknown>>[];
}

const user = { messages: [{ role: 'user', content: 'Hi' }] };

/** Sends the calls of a case, one after the other, and returns what the provider got because of them. */
async function send(
  url: string,
  { path = '/v1/chat/completions', body = {}, headers = {}, times = 1 }: Omit<Case, 'name' | 'config'>,
  config: object,
): Promise<Outcome> {
  const before = provider.received.length;
  const statuses: number[] = [];
  for (let count = 0; count < times; count += 1) {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', 'x-portkey-config': JSON.stringify(config) },
        ...headers,
      },
      body: JSON.stringify({ model: 'gpt-x', ...('input' in body ? {} : user), ...body }),
    });
    await reply.text();
    statuses.push(reply.status);
  }
  return { statuses, calls: provider.received.slice(before).map(shown) };
}

/** A call of the provider. What is written in two ways and means the same is written in one. */
function shown(received: Received): Outcome['calls'][number] {
  const { method, target, headers } = received;
  const body = bodyIn(received);
  if (body.stream === false) delete body.stream;
  if (Array.isArray(body['system']) && body['system'].length === 0) delete body['system'];
  return {
    path: `${method} ${target.replace(/\?$/, '')}`,
    auth: {
      ...{ authorization: headers.authorization, anthropic: headers['x-api-key'], team: headers['x-team'] },
      ...{ organization: headers['openai-organization'], project: headers['openai-project'] },
      portkey: Object.keys(headers).filter((name) => name.startsWith('x-portkey-')),
    },
    body,
  };
}

function compared({ statuses, calls }: Outcome, parts: readonly Part[] = []): object {
  const kept = parts.includes('count') ? calls.slice(0, 1) : calls;
  return {
    ...(!parts.includes('status') && { statuses }),
    calls: kept.map((call) =>
      Object.fromEntries(Object.entries(call).filter(([part]) => !parts.some((each) => each === part))),
    ),
  };
}

test.each(CASES)('Portkey and the gateway make the same calls of the provider: $name', async (each) => {
  const config = each.config(base);
  await using imported = await startImported(config);
  const there = await send(portkey, each, config);
  const here = await send(imported.url, each, config);
  expect(compared(here, each.differs?.in)).toEqual(compared(there, each.differs?.in));
  // A difference that is gone is taken off the list.
  if (each.differs !== undefined) expect(here, each.differs.because).not.toEqual(there);
});

test('Portkey and the gateway spread calls over targets by weight', async () => {
  const target = (name: string, weight: number): object => ({
    ...{ provider: 'openai', api_key: 'k', custom_host: `${base}/${name}/v1` },
    weight,
  });
  const config = {
    strategy: { mode: 'loadbalance' },
    targets: [target('often', 0.75), target('seldom', 0.25)],
  };
  await using imported = await startImported(config);
  for (const url of [portkey, imported.url]) {
    const { statuses, calls } = await send(url, { times: 200 }, config);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const often = calls.filter(({ path }) => String(path).includes('/often/')).length;
    // 150 are expected; less than 110 or more than 185 happen once in a billion runs.
    expect(often).toBeGreaterThan(110);
    expect(often).toBeLessThan(185);
  }
});
