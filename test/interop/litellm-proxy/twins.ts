import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { agctl, service } from '../../kit/process.ts';
import type { HttpUpstream, Received } from '../../kit/upstream.ts';
import { PROXY_KEY, startProxy } from './proxy.ts';
import { bodyIn, twinProvider } from './twin-provider.ts';

const VARIABLES = { OPENAI_API_KEY: 'sk-openai', ANTHROPIC_API_KEY: 'sk-anthropic', AZURE_API_KEY: 'az-key' };

type Part = 'status' | 'path' | 'model' | 'auth' | 'body' | 'count';

/** A call of a client, and what of LiteLLM and the gateway may differ, with the reason. */
export interface Case {
  readonly name: string;
  readonly model: string;
  readonly path?: string;
  readonly body?: object;
  readonly differs?: { readonly in: readonly Part[]; readonly because: string };
}

const user = { messages: [{ role: 'user', content: 'Hi' }] };

export interface Twins extends AsyncDisposable {
  readonly provider: HttpUpstream;
  readonly litellm: string;
  readonly gateway: string;
}

/** LiteLLM and a gateway with what was imported from the same file. */
export async function startTwins(configFor: (base: string) => string): Promise<Twins> {
  await using stack = new AsyncDisposableStack();
  const provider = stack.use(await twinProvider());
  const folder = await temporaryFolder();
  stack.defer(() => folder.remove());
  const config = configFor(`http://${provider.address}`);
  writeFileSync(join(folder.path, 'config.yaml'), config);
  const port = String(await freePort());
  const options = { cwd: folder.path, env: { HOME: folder.path, ...VARIABLES } };
  const made = await agctl(['init', '--yes', '--from', 'config.yaml', '--port', port], options);
  expect([made.code, made.stderr]).toEqual([0, '']);
  const gateway = stack.use(await service(['serve'], options));
  const litellm = stack.use(await startProxy(config, VARIABLES));
  const { url } = litellm;
  const all = stack.move();
  return { provider, gateway: gateway.url, litellm: url, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

interface Outcome {
  readonly status: number;
  readonly calls: readonly Readonly<Record<Part, unknown>>[];
}

/** Sends a call, and returns what the provider got because of it. */
async function send(
  { received }: HttpUpstream,
  url: string,
  { path = '/v1/chat/completions', model, body = {} }: Case,
): Promise<Outcome> {
  const before = received.length;
  const reply = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${PROXY_KEY}` },
    body: JSON.stringify({ model, ...('input' in body || 'prompt' in body ? {} : user), ...body }),
  });
  await reply.text();
  return { status: reply.status, calls: received.slice(before).map(shown) };
}

/** A call of the provider. What is written in two ways and means the same is written in one. */
function shown(received: Received): Outcome['calls'][number] {
  const { method, target, headers } = received;
  const { model, ...body } = bodyIn(received);
  const { authorization, 'x-api-key': anthropic, 'api-key': azure, 'x-team': team } = headers;
  // No stream is the default of every API, and tools of Claude are `custom` unless they say otherwise.
  if (body.stream === false) delete body.stream;
  return {
    count: 1,
    status: undefined,
    path: `${method} ${target}`,
    model,
    // Servers that need no key get a made-up one.
    auth: {
      ...{ anthropic, azure, team, organization: headers['openai-organization'] },
      authorization: /fake-api-key|none/.test(String(authorization)) ? undefined : authorization,
    },
    body: JSON.parse(JSON.stringify(body), (key, value: unknown) =>
      key === 'content' ? textOfOne(value) : value === 'custom' ? undefined : value,
    ) as object,
  };
}

/** A content of one text is a list with it, or the text. */
function textOfOne(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content;
  const { type, text, ...rest } = content[0] as Record<string, unknown>;
  return type === 'text' && Object.keys(rest).length === 0 ? text : content;
}

/** What must be the same. */
function compared({ status, calls }: Outcome, parts: readonly Part[] = []): object {
  const kept = parts.includes('count') ? calls.slice(0, 1) : calls;
  return {
    ...(!parts.includes('status') && { status }),
    calls: kept.map((call) =>
      Object.fromEntries(Object.entries(call).filter(([part]) => !parts.some((each) => each === part))),
    ),
  };
}

/** Sends a call to both, and expects the same calls of the provider. */
export async function compareTwins({ provider, litellm, gateway }: Twins, each: Case): Promise<void> {
  const there = await send(provider, litellm, each);
  const here = await send(provider, gateway, each);
  expect(compared(here, each.differs?.in)).toEqual(compared(there, each.differs?.in));
  // A difference that is gone is taken off the list.
  if (each.differs !== undefined) expect(here, each.differs.because).not.toEqual(there);
}
