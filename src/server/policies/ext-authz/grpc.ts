import { randomUUID } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { certificateMembers } from '../../expressions/client-certificate.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { ClientConnection } from '../../kernel/request/client-connection.ts';
import { HeaderList, isSettableHeader } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { withoutParameters } from '../../kernel/request/request-target.ts';
import { jwtClaims } from '../../kernel/request/shared-slots.ts';
import { toStruct } from '../../transport/services/protobuf-struct.ts';
import { type CheckAnswer, checkAnswerIn, type OkAnswer } from '../envoy/authorization-service.ts';
import { applyHeaderOptions, headerOf } from '../envoy/messages.ts';
import { requestBodyFor } from './body.ts';
import type { Outcome } from './outcome.ts';
import type { GrpcPlan } from './plan.ts';

/** Calls a service with Envoy's protocol. Rejects if the service cannot be reached or answers with a gRPC error. */
export async function askGrpc(ctx: RequestContext, plan: GrpcPlan): Promise<Outcome> {
  const body = await requestBodyFor(ctx, plan.config.includeRequestBody);
  const options = { timeout: plan.timeout, signal: ctx.signal, span: ctx.span };
  const request = { attributes: attributesOf(ctx, plan, body) };
  const answer = checkAnswerIn(await plan.service.call('Check', request, options));
  return answer.code === 0 ? allowed(answer) : denied(answer, plan);
}

function attributesOf(
  ctx: RequestContext,
  plan: GrpcPlan,
  body: Awaited<ReturnType<typeof requestBodyFor>>,
): object {
  const { client, timings } = ctx;
  const isPacked = plan.config.includeRequestBody?.packAsBytes === true;
  return {
    ...peersOf(client),
    request: {
      time: { seconds: Math.floor(timings.startedAt / 1000), nanos: (timings.startedAt % 1000) * 1_000_000 },
      http: {
        id: ctx.span?.traceId ?? randomUUID(),
        method: ctx.method,
        headers: headersOf(ctx, plan.includeRequestHeaders),
        path: ctx.path + ctx.query,
        host: ctx.host,
        scheme: ctx.client.scheme,
        protocol: `HTTP/${ctx.request.httpVersion}`,
        // Envoy: -1 for a body that is not complete.
        size: body === undefined ? 0 : body.isPartial ? -1 : body.bytes.length,
        ...(body !== undefined &&
          (isPacked ? { raw_body: body.bytes } : { body: body.bytes.toString('utf8') })),
      },
    },
    context_extensions: plan.grpc.context,
    metadata_context: { filter_metadata: metadataOf(ctx, plan) },
  };
}

/** `source` and `destination` of `AttributeContext`. */
export const peersOf = (client: ClientConnection): object => ({
  source: peer(client.address, client.port, principalOf(client)),
  destination: peer(client.local.localAddress ?? '', client.local.localPort ?? 0),
});

const peer = (address: string, port: number, principal = ''): object => ({
  address: { socket_address: { protocol: 0, address: address.replace(/^::ffff:/, ''), port_value: port } },
  principal,
});

/** The identity in the certificate of the client: its SPIFFE ID, as upstream. */
function principalOf({ tls }: ClientConnection): string {
  return tls?.certificate === undefined ? '' : String(certificateMembers(tls.certificate).spiffeId ?? '');
}

/** Headers by name in lower case; without a list of names, all of them. */
function headersOf(ctx: RequestContext, names: readonly string[] | undefined): Record<string, string> {
  const all: Record<string, string> = {
    ':method': ctx.method,
    ':path': ctx.path + ctx.query,
    ':authority': ctx.host,
    ':scheme': ctx.client.scheme,
  };
  const { raw } = ctx.headers;
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const known = Object.hasOwn(all, name) ? all[name] : undefined;
    const value = raw[at + 1] ?? '';
    all[name] = known === undefined ? value : `${known}${name === 'cookie' ? '; ' : ', '}${value}`;
  }
  if (names === undefined) return all;
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(all).filter(([name]) => wanted.has(name)));
}

/** Without configured values, the claims of a token as Envoy's JWT filter sets them. */
function metadataOf(ctx: RequestContext, { metadata }: GrpcPlan): Record<string, object> {
  if (metadata === undefined) {
    const claims = jwtClaims.get(ctx);
    return claims === undefined ? {} : { 'envoy.filters.http.jwt_authn': toStruct({ jwt_payload: claims }) };
  }
  const lookup = resolverFor(ctx);
  return Object.fromEntries(
    metadata.flatMap(([name, expression]) => {
      const value = tryEvaluate(expression, lookup);
      const isMap =
        typeof value === 'object' &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Uint8Array);
      return isMap ? [[name, toStruct(value)]] : [];
    }),
  );
}

function allowed({ ok, metadata: values }: CheckAnswer): Outcome {
  const responseHeaders = (ok?.responseHeaders ?? []).flatMap(({ header }) => {
    const pair = headerOf(header);
    return pair === undefined ? [] : [pair];
  });
  return {
    reason: 'the service allowed it',
    isCacheable: true,
    values,
    responseHeaders,
    apply(ctx) {
      if (!ok) return undefined;
      // A second lock: the call of a backend sets those fields itself.
      for (const name of ok.headersToRemove) if (isSettableHeader(name)) ctx.headers.delete(name);
      applyHeaderOptions(ctx.headers, ok.headers);
      changeQuery(ctx, ok);
      return undefined;
    },
  };
}

function changeQuery(
  ctx: RequestContext,
  { parametersToSet: set, parametersToRemove: removed }: OkAnswer,
): void {
  if (set.length === 0 && removed.length === 0) return;
  const kept = withoutParameters(ctx.query, new Set([...removed, ...set.map(({ key }) => key)]));
  const added = new URLSearchParams(set.map(({ key, value }) => [key, value])).toString();
  ctx.rewriteTarget(ctx.path, added === '' ? kept : kept === '' ? `?${added}` : `${kept}&${added}`);
}

function denied({ code, denied: response, metadata: values }: CheckAnswer, { config }: GrpcPlan): Outcome {
  const common = { reason: `the service answered with code ${code}`, isCacheable: true, values };
  if (!response || config.denyResponse === 'fixed')
    return {
      ...common,
      apply: () =>
        new AppError('ext_authz_failed', { detail: `the authorization service answered with code ${code}` }),
    };
  const { body } = response;
  const requested = response.status ?? 403;
  const status = requested >= 200 && requested <= 599 ? requested : 403;
  return {
    ...common,
    size: Buffer.byteLength(body),
    apply() {
      const headers = new HeaderList();
      applyHeaderOptions(headers, response.headers);
      if (body !== '' && !headers.has('content-type'))
        headers.set('content-type', 'text/plain; charset=utf-8');
      return { status, headers, body };
    },
  };
}
