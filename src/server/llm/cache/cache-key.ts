import { hash } from 'node:crypto';
import { FieldNames, HeaderList } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { principal } from '../../kernel/request/shared-slots.ts';
import { dropCredentials, gatewayCredential, isCredential } from '../credentials.ts';
import type { LlmCall } from '../llm-call.ts';
import type { CallBody } from '../request/call-body.ts';
import type { Endpoint } from '../request/endpoints.ts';

/** A call that is about to be sent, and the credential of its model. */
export interface OutgoingCall {
  readonly call: LlmCall;
  /** The request in the client's format. */
  readonly body: CallBody;
  readonly endpoint: Endpoint;
  readonly nameAtProvider: string;
  readonly model: Parameters<typeof gatewayCredential>[1];
}

/**
 * Headers that describe the request, the connection or the program, not the wanted answer. Every other header that a
 * provider gets is part of the key, so that one that is not listed costs an answer and never gives a wrong one.
 */
const OF_ONE_REQUEST = new FieldNames([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'cookie',
  'date',
  'expect',
  'forwarded',
  'host',
  'idempotency-key',
  'keep-alive',
  'origin',
  'pragma',
  'priority',
  'referer',
  'b3',
  'sentry-trace',
  'traceparent',
  'tracestate',
  'baggage',
  'user-agent',
  'via',
  'uber-trace-id',
  'x-amzn-trace-id',
  'x-client-request-id',
  'x-cloud-trace-context',
  'x-correlation-id',
  'x-real-ip',
  'x-request-id',
]);

/** Headers of proxies and browsers, and what the SDKs of OpenAI and Anthropic say of themselves. */
const OF_PROGRAM = /^(?:x-forwarded-|sec-|x-stainless-|x-b3-|x-datadog-)/i;

/**
 * What two calls have in common if the answer to one is an answer to the other, as SHA-256 in base64url. `model`
 * identifies the configuration of the model, `isShared` says whether callers share answers.
 */
export function cacheKey(
  ctx: RequestContext,
  { call, endpoint, model: entry, nameAtProvider }: OutgoingCall,
  sent: CallBody,
  { model, isShared }: { readonly model: string; readonly isShared: boolean },
): string {
  const { apiKey, isReplaced } = gatewayCredential(ctx, entry);
  const parts = [
    model,
    apiKey ?? '',
    isShared ? '' : callerOf(ctx),
    call.format ?? '',
    call.upstreamFormat ?? '',
    endpoint.path ?? ctx.path,
    ctx.query,
    nameAtProvider,
    headersOf(ctx, isReplaced),
    String(sent.encode() ?? ''),
  ];
  let text = '';
  for (const part of parts) text += `${part.length}:${part}`;
  return hash('sha256', text, 'base64url');
}

/** The headers that count, in any order. The client's credentials are those for the provider unless they are replaced. */
function headersOf({ headers, request }: RequestContext, isReplaced: boolean): string {
  const list = isReplaced ? new HeaderList(headers.raw) : headers;
  if (isReplaced) dropCredentials(list, request);
  const { raw } = list;
  const found: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    if (!OF_ONE_REQUEST.has(name) && !OF_PROGRAM.test(name))
      found.push(`${name.toLowerCase()}:${raw[at + 1]}`);
  }
  return found.length < 2 ? (found[0] ?? '') : found.sort().join('\n');
}

/**
 * Who calls: the identity that a policy has found, and everything that an external service may have decided on: the
 * credentials that the client has sent and its certificate.
 */
function callerOf(ctx: RequestContext): string {
  const known = principal.get(ctx);
  if (known !== undefined) return known;
  const { headers } = ctx.request;
  const sent: unknown[] = [];
  for (const name in headers) if (name === 'cookie' || isCredential(name)) sent.push(name, headers[name]);
  sent.push(ctx.client.tls?.certificate?.fingerprint256);
  return JSON.stringify(sent);
}
