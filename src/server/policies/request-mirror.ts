import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { definePolicy } from '../kernel/policy.ts';
import { FieldNames, withoutFields } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { handshake } from '../kernel/request/upgrade.ts';
import { securedAddress } from '../transport/services/service-policies.ts';
import {
  compileService,
  isOneReference,
  serviceFields,
  serviceMeta,
} from '../transport/services/service-reference.ts';
import { createUpstream, parseAddress, type Upstream } from '../transport/upstream/upstream.ts';
import { explainUpstreamError } from '../transport/upstream/upstream-error.ts';

const schema = mapping('Sends copies of requests to another service, whose responses are discarded.', {
  backend: z
    .strictObject(serviceFields)
    .check(isOneReference)
    .meta(serviceMeta)
    .describe('The service that receives the copies.'),
  percentage: z.number().min(0).max(1).describe('Share of the requests that are copied, from 0 to 1.'),
});

/** Sends copies of requests to another service. Never slows down or fails the request itself. */
export const requestMirror = definePolicy({
  key: 'requestMirror',
  places: ['route', 'backend'],
  schema,
  trace: { kind: 'request_mirror', stage: 'request mirror' },
  compile({ backend, percentage }, context) {
    const service = compileService(backend, context.at('backend'));
    const address = service && parseAddress(service.host, service.at);
    if (service === undefined || address === undefined) return {};
    const { tls, authorization } = service.connection;
    const max = context.settings.limits.mirroredRequests;
    const upstream = createUpstream(securedAddress(address, service.connection), {
      ...(tls && { tls }),
      ...(authorization !== undefined && { authorization }),
      connections: max,
      meter: context.settings.callMeter('Mirror', 'Http'),
      log: context.log,
    });
    const counted = context.settings.counter('mirroredRequests');
    let open = 0;
    context.inspection.bounds.push({
      name: 'requestMirror.requests',
      at: context.path.join('.'),
      max,
      used: () => open,
    });
    const finished = (outcome: string): void => {
      open -= 1;
      counted([outcome]);
    };
    const failed = (error: unknown): void => {
      finished('Failed');
      const problem = explainUpstreamError(error);
      context.log.debug('proxy::mirror', 'a mirrored request failed', {
        upstream: upstream.address,
        problem,
      });
    };
    return {
      async request(ctx) {
        if (Math.random() >= percentage) return undefined;
        open += 1;
        const copy = open > max ? undefined : await copyOf(ctx, upstream);
        const note = { kind: 'requestMirror' } as const;
        if (copy === undefined) {
          finished('Skipped');
          ctx.observer?.policy({
            ...note,
            action: 'skip',
            reason: 'its body is too large, or too many copies are open',
          });
          return undefined;
        }
        send(copy, upstream).then(() => finished('Sent'), failed);
        ctx.observer?.policy({ ...note, action: 'apply', reason: `copied to ${upstream.address}` });
        return undefined;
      },
      close: () => upstream.close(),
    };
  },
});

type Copy = Parameters<Upstream['request']>[0];

const NOT_COPIED = new FieldNames(['host', 'expect', 'content-length']);

/** The request for the service; undefined if it has a body that is larger than `LIMITS.smallBody` or has no length. */
async function copyOf(ctx: RequestContext, { isNamed, authority }: Upstream): Promise<Copy | undefined> {
  if (handshake.get(ctx) !== undefined) return undefined;
  const { headers } = ctx.request;
  if (
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) <= LIMITS.smallBody
  )
    await ctx.body.capture(LIMITS.smallBody);
  const { captured } = ctx.body;
  if (captured === undefined || captured.length > LIMITS.smallBody) return undefined;
  const host = isNamed || ctx.host === '' ? authority : ctx.host;
  return {
    method: ctx.method,
    path: ctx.path + ctx.query,
    headers: [...withoutFields(ctx.headers.raw, NOT_COPIED), 'host', host],
    body: captured.length === 0 ? null : captured,
  };
}

async function send(copy: Copy, upstream: Upstream): Promise<void> {
  const signal = AbortSignal.timeout(LIMITS.mirrorTimeout);
  const { body } = await upstream.request({ ...copy, signal });
  // Reads a small body, so that the connection can be used again, and closes it otherwise.
  await body.dump({ limit: LIMITS.smallBody, signal });
}
