import { isRecord, jsonIn, membersOf } from '../../core/foreign.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { responseWaits } from '../kernel/backend.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { type A2aCall, a2aCall } from '../kernel/request/shared-slots.ts';
import { bodyForExpressions, holdBody, replaceBody } from '../transport/upstream/held-body.ts';

const schema = mapping(
  'For agents with the Agent2Agent protocol (A2A): URLs in agent cards lead through the gateway, and the access log has the method and outcome of calls.',
  {},
);

/** Where agents publish their cards: since A2A 0.3, and before. */
const CARD = /\/\.well-known\/agent(?:-card)?\.json$/;

/** Rewrites agent cards, and records calls of agents. */
export const a2a = definePolicy({
  key: 'a2a',
  places: ['route', 'backend'],
  isForBackendCall: true,
  schema,
  trace: { kind: 'a2a', stage: 'a2a', isBackendPolicy: true },
  compile(_config, { settings }) {
    const limit = settings.maxBufferSize;
    return {
      async request(ctx) {
        if (ctx.method === 'GET' && CARD.test(ctx.path)) {
          const agentPath = ctx.path.replace(CARD, '');
          responseWaits.ensure(ctx, () => []).push((reply) => rewriteCard(ctx, reply, agentPath, limit));
        } else if (ctx.method === 'POST' && isJson(ctx.headers.get('content-type'))) {
          await ctx.body.capture(limit);
          const call: A2aCall = { method: methodOf(ctx.body.captured) };
          a2aCall.set(ctx, call);
          responseWaits.ensure(ctx, () => []).push((reply) => recordOutcome(ctx, reply, call, limit));
        }
        return undefined;
      },
    };
  },
});

const isJson = (type: string | undefined): boolean => /^application\/(?:[\w.-]+\+)?json\b/i.test(type ?? '');

type Json = Readonly<Record<string, unknown>>;

/** The object in a JSON text; undefined for anything else. */
function parsed(bytes: Uint8Array | string | undefined): Json | undefined {
  if (bytes === undefined) return undefined;
  const value = jsonIn(typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8'));
  return isRecord(value) ? value : undefined;
}

function methodOf(body: Buffer | undefined): string {
  const method = parsed(body)?.['method'];
  // Names of A2A are below 40 characters.
  return typeof method === 'string' && /^[\w/.-]{1,64}$/.test(method) ? method : 'unknown';
}

/** Replaces the URLs of a card. A response that is not a card stays as it is. */
async function rewriteCard(
  ctx: RequestContext,
  reply: Reply,
  agentPath: string,
  limit: number,
): Promise<void> {
  if (reply.status !== 200) return;
  await holdBody(ctx, reply, limit);
  const card = parsed(bodyForExpressions(ctx, reply));
  if (card === undefined) return;
  const base = publicBase(ctx);
  const url = (text: unknown): string | undefined => {
    if (typeof text !== 'string' || !URL.canParse(text)) return undefined;
    const { pathname, search } = new URL(text);
    const isBelow = agentPath !== '' && (pathname === agentPath || pathname.startsWith(`${agentPath}/`));
    const rest = (isBelow ? pathname.slice(agentPath.length) : pathname).replace(/^\/$/, '');
    return base + rest + search;
  };
  replaceBody(reply, Buffer.from(JSON.stringify(withUrls(card, url, base))));
  ctx.observer?.policy({ kind: 'a2a', action: 'apply', reason: `URLs of the agent card lead to ${base}` });
}

/** A2A 1.0 has a URL in each of `supportedInterfaces`; A2A 0.3 has `url` and `additionalInterfaces`. */
function withUrls(card: Json, url: (text: unknown) => string | undefined, base: string): Json {
  const interfaces = (list: unknown): unknown =>
    Array.isArray(list)
      ? list.map((one: unknown) => {
          const known = membersOf(one);
          const rewritten = url(known['url']);
          return rewritten === undefined ? one : { ...known, url: rewritten };
        })
      : list;
  return {
    ...card,
    ...('url' in card && { url: base }),
    ...('supportedInterfaces' in card && { supportedInterfaces: interfaces(card['supportedInterfaces']) }),
    ...('additionalInterfaces' in card && { additionalInterfaces: interfaces(card['additionalInterfaces']) }),
  };
}

/** URL of the agent as the client sees it, without the path of the card. */
function publicBase(ctx: RequestContext): string {
  const { client, requestedHost = ctx.host, requestedTarget = ctx.path } = ctx;
  return `${client.scheme}://${requestedHost}${requestedTarget.replace(/\?.*$/, '').replace(CARD, '')}`;
}

async function recordOutcome(ctx: RequestContext, reply: Reply, call: A2aCall, limit: number): Promise<void> {
  // Streams of events are not held up.
  if (!isJson(reply.headers.get('content-type'))) return;
  await holdBody(ctx, reply, limit);
  const message = parsed(bodyForExpressions(ctx, reply));
  if (message === undefined) return;
  const { error, result } = message;
  call.outcome = error ? 'error' : result ? 'success' : 'unknown';
  const { code } = membersOf(error);
  if (typeof code === 'number') call.errorCode = code;
  // A2A 0.3 has the task or message itself, A2A 1.0 a member for it.
  const members = membersOf(result);
  const { status } = membersOf(members['task'] ?? members['message'] ?? result);
  const { state } = membersOf(status);
  if (typeof state === 'string') call.taskState = state.slice(0, 64);
  ctx.observer?.policy({ kind: 'a2a', action: 'apply', reason: `${call.method}: ${call.outcome}` });
}
