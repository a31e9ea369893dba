import { z } from 'zod';
import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { CelEvaluationError } from '../cel/errors.ts';
import type { Expression } from '../cel/expression.ts';
import type { CompileContext } from '../compile-context.ts';
import type { Exchange, Reply } from '../http/exchange.ts';
import { HeaderList, isHeaderName, isHeaderValue } from '../http/header-list.ts';
import { createUpstream, type Upstream } from '../http/upstream.ts';
import { explainUpstreamError } from '../http/upstream-error.ts';
import { definePolicy } from '../policy.ts';
import { parseAddress } from '../static/address.ts';
import { type Lookup, lookupIn, ResponseView } from '../variables.ts';

const expression = z.string().min(1);
const metadata = z.record(z.string().min(1), expression);
const headerName = z
  .string()
  .refine((name) => isHeaderName(name.replace(/^:/, '')), { error: 'expected a header name' });

const schema = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .describe(
        'Address of the authorization service: `host:port`, a URL without a path, or `unix:/path/of/socket`.',
      ),
    protocol: z
      .strictObject({
        http: z
          .strictObject({
            path: expression
              .optional()
              .describe(
                'CEL expression for path and query of the request to the service; those of the client by default.',
              ),
            addRequestHeaders: z
              .record(headerName, expression)
              .default({})
              .describe(
                'Headers for the service, as CEL expressions; `:authority` sets the host. One that fails is left out.',
              ),
            includeResponseHeaders: z
              .array(headerName)
              .default([])
              .describe("Headers of the service's reply that the backend receives."),
            redirect: expression
              .optional()
              .describe(
                'CEL expression for a URL to send the client to (302) when the service answers 401 or 403.',
              ),
            metadata: metadata.optional().describe('Same as `metadata` beside `host`.'),
          })
          .describe('Ask over HTTP.'),
      })
      .optional()
      .describe('How the service is asked.'),
    metadata: metadata
      .optional()
      .describe(
        "Values taken from the service's reply (`response`), as CEL expressions; read as `extauthz.<name>`. One that fails is left out.",
      ),
    includeRequestHeaders: z
      .array(headerName)
      .default(['authorization'])
      .describe('Headers of the client that the service receives.'),
    failureMode: z
      .union([
        z.enum(['deny', 'allow']),
        z.strictObject({ denyWithStatus: z.int().min(400).max(599).describe('Status of the refusal.') }),
      ])
      .default('deny')
      .describe('What happens when the service cannot be asked.'),
    denyResponse: z
      .enum(['fixed', 'passthrough'])
      .default('fixed')
      .describe("What a refused client gets: 403 with a fixed text, or the service's own reply."),
  })
  .describe('Asks an external service whether a request may pass.');

type Config = z.output<typeof schema>;

interface Plan {
  readonly upstream: Upstream;
  readonly config: Config;
  readonly path: Expression | undefined;
  readonly headers: readonly (readonly [name: string, value: Expression])[];
  readonly redirect: Expression | undefined;
  readonly metadata: readonly (readonly [name: string, value: Expression])[];
}

/** External authorization over HTTP. */
export const extAuthz = definePolicy({
  key: 'extAuthz',
  schema,
  compile(config, context) {
    const plan = compilePlan(config, context);
    if (plan === undefined) return {};
    return { request: (x) => ask(x, plan), close: () => plan.upstream.close() };
  },
});

function compilePlan(config: Config, context: CompileContext): Plan | undefined {
  const http = config.protocol?.http;
  if (http === undefined) {
    context.report({
      code: 'AGW0103',
      message: '`protocol.http` is missing',
      label: 'how to ask the service is not said',
      help: 'add `protocol: { http: {} }`',
      notes: ['upstream would speak gRPC here without saying so, which this gateway does not support'],
    });
  }
  if (http?.metadata !== undefined && config.metadata !== undefined) {
    context.at('metadata').report({
      code: 'AGW0105',
      message: '`metadata` stands twice',
      help: 'keep it either here or under `protocol.http`',
    });
  }
  // What proves to the service who the client is must not show in a trace.
  for (const name of config.includeRequestHeaders)
    if (name.toLowerCase() !== 'host') context.settings.secretNames.headers.add(name.toLowerCase());
  const address = parseAddress(config.host, context.at('host'));
  if (http === undefined) return undefined;
  const inHttp = context.at('protocol', 'http');
  const [source, place] =
    config.metadata === undefined
      ? [http.metadata ?? {}, inHttp.at('metadata')]
      : [config.metadata, context.at('metadata')];
  const compiled: Omit<Plan, 'upstream'> = {
    config,
    path: http.path === undefined ? undefined : inHttp.at('path').cel(http.path, 'request'),
    headers: Object.entries(http.addRequestHeaders).map(([name, value]) => [
      name,
      inHttp.at('addRequestHeaders', name).cel(value, 'request'),
    ]),
    redirect:
      http.redirect === undefined
        ? undefined
        : inHttp.at('redirect').cel(http.redirect, 'authorizationReply'),
    metadata: Object.entries(source).map(([name, value]) => [
      name,
      place.at(name).cel(value, 'authorizationReply'),
    ]),
  }; // Only now: a wrong address must not hide wrong expressions.
  return address === undefined
    ? undefined
    : {
        ...compiled,
        upstream: createUpstream(address, { meter: context.settings.metrics.calls('Policy', 'ExtAuthz') }),
      };
}

/** What the service said; `body` holds at most `LIMITS.authorizationBody` bytes. */
interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
}

async function ask(x: Exchange, plan: Plan): Promise<Reply | undefined> {
  const path = requestPath(x, plan);
  const since = x.trace?.now ?? 0;
  let answer: Answer;
  try {
    answer = await call(x, plan, path);
  } catch (error) {
    return unanswered(x, plan, error);
  }
  const lookup = lookupIn(x, {
    response: new ResponseView(answer.status, answer.headers.raw, () => answer.body),
  });
  if (answer.status < 200 || answer.status > 299) return refuse(x, plan, answer, lookup);
  const values = Object.fromEntries(
    plan.metadata.flatMap(([name, value]) => {
      const result = attempt(value, lookup);
      return result === undefined ? [] : [[name, result]];
    }),
  );
  x.extauthz = values;
  x.changed('extauthz');
  for (const name of plan.config.protocol?.http.includeResponseHeaders ?? []) {
    const received = answer.headers.all(name);
    x.headers.delete(name);
    for (const value of received) x.headers.append(name, value);
  }
  x.trace?.policy({
    kind: 'extAuthz',
    action: 'apply',
    reason: `the service allowed it (${answer.status})`,
    snapshot: values,
    since,
  });
  return undefined;
}

/** The path must be a text that can stand in a request line: anything else would ask another question. */
function requestPath(x: Exchange, plan: Plan): string {
  if (plan.path === undefined) return x.path + x.query;
  const path = attempt(plan.path, lookupIn(x));
  if (typeof path === 'string' && /^\/[\x21-\x7e]*$/.test(path) && !path.includes('#')) return path;
  throw denial(x, 'extAuthz.protocol.http.path gives no path');
}

async function call(x: Exchange, { upstream, headers: added, config }: Plan, path: string): Promise<Answer> {
  let authority = upstream.authority;
  const headers: string[] = [];
  for (const name of config.includeRequestHeaders) {
    // The call has a host and a length of its own: a second one would make it ambiguous.
    if (name.toLowerCase() === 'host') authority = x.headers.get('host') ?? authority;
    else if (name.toLowerCase() !== 'content-length')
      for (const value of x.headers.all(name)) headers.push(name, value);
  }
  const lookup = lookupIn(x);
  for (const [name, expression_] of added) {
    const value = attempt(expression_, lookup);
    if (typeof value !== 'string' || !isHeaderValue(value)) continue;
    if (name === ':authority') authority = value;
    else if (!name.startsWith(':')) headers.push(name, value);
  }
  const request = {
    method: x.method,
    path,
    headers: ['host', authority, ...headers],
    isReplaySafe: true,
    span: x.span,
  };
  const signal = AbortSignal.any([AbortSignal.timeout(LIMITS.authorizationTimeout), x.signal]);
  const sent = upstream.request({ ...request, signal });
  const response = await (x.trace === undefined ? sent : x.trace.call(upstream.address, sent, 'ext_authz'));
  const body = await readUpTo(response.body, LIMITS.authorizationBody);
  const raw = Object.entries(response.headers).flatMap(([name, value]) =>
    [value].flat().flatMap((one) => (one === undefined ? [] : [name, one])),
  );
  return { status: response.statusCode, headers: new HeaderList(raw), body };
}

async function readUpTo(stream: AsyncIterable<Buffer> & { destroy(): void }, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

function unanswered(x: Exchange, { config }: Plan, error: unknown): undefined {
  const problem =
    error instanceof Error && error.name === 'TimeoutError'
      ? 'no answer in time'
      : explainUpstreamError(error);
  if (config.failureMode === 'allow') {
    x.trace?.policy({
      kind: 'extAuthz',
      action: 'skip',
      reason: `the service could not be asked (${problem}), which this policy allows`,
    });
    return undefined;
  }
  const status = typeof config.failureMode === 'object' ? config.failureMode.denyWithStatus : undefined;
  throw denial(x, `the authorization service could not be asked: ${problem}`, status);
}

function refuse(x: Exchange, plan: Plan, answer: Answer, lookup: Lookup): Reply {
  const { status, headers, body } = answer;
  if (plan.redirect !== undefined && (status === 401 || status === 403)) {
    const location = attempt(plan.redirect, lookup);
    if (typeof location !== 'string' || !isHeaderValue(location))
      throw denial(x, 'extAuthz.protocol.http.redirect gives no URL');
    x.trace?.policy({
      kind: 'extAuthz',
      action: 'respond',
      reason: `the service answered ${status}: redirect`,
    });
    x.reason = 'ExtAuth';
    return { status: 302, headers: new HeaderList(['location', location]), body: undefined };
  }
  if (plan.config.denyResponse === 'fixed') throw denial(x, `the authorization service answered ${status}`);
  x.trace?.policy({ kind: 'extAuthz', action: 'deny', reason: `the service answered ${status}` });
  x.reason = 'ExtAuth';
  x.error = 'external authorization failed';
  const kept = ['content-type', 'www-authenticate', 'location', 'retry-after'].flatMap((name) =>
    headers.all(name).flatMap((value) => [name, value]),
  );
  return { status, headers: new HeaderList(kept), body };
}

function denial(x: Exchange, reason: string, status?: number): AppError {
  x.trace?.policy({ kind: 'extAuthz', action: 'deny', reason });
  return new AppError('ext_authz_failed', { detail: reason, ...(status === undefined ? {} : { status }) });
}

/** The value of an expression, or undefined when it cannot be evaluated. */
function attempt(compiled: Expression, lookup: Lookup): unknown {
  try {
    return compiled.evaluate(lookup);
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined;
    throw new Error(`expression failed: ${messageOf(error)}`, { cause: error });
  }
}
