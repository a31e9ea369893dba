import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { backendTimeouts, defineBackend } from '../kernel/backend.ts';
import { withoutFields } from '../kernel/header-list.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import { parseAddress } from './service-address.ts';
import { createUpstream, type Upstream } from './upstream.ts';

/** The Host header for a service, from the host that the client asked for and the service's own. */
export type HostRewrite = (
  asked: string,
  own: { readonly authority: string; readonly isTls: boolean },
) => string;

/** Set by `urlRewrite`. */
export const hostRewrite = new Slot<HostRewrite>();

/** A plain HTTP service: requests and responses pass through, streaming both ways. */
export const host = defineBackend({
  key: 'host',
  schema: z
    .string()
    .min(1)
    .describe('Address of an HTTP service: `host:port`, a URL without a path, or `unix:/path/of/socket`.'),
  open(address, context) {
    const parsed = parseAddress(address, context);
    if (parsed === undefined) {
      return { handle: () => Promise.reject(new AppError('no_backend')), close: () => Promise.resolve() };
    }
    const upstream = createUpstream(parsed, {
      meter: context.settings.callMeter('Primary', 'Http'),
      log: context.log,
    });
    return { handle: (x) => proxy(x, upstream), close: () => upstream.close() };
  },
});

const NOT_FORWARDED = new Set(['host', 'expect']);

/**
 * As upstream, whose default is `urlRewrite.authority: auto`: a service that is configured by a name is asked by it, as
 * virtual hosts and certificates need; any other is told what the client asked for.
 */
function hostFor(x: RequestContext, upstream: Upstream): string {
  // HTTP/1.0 may come without one.
  if (x.host === '') return upstream.authority;
  const rewrite = hostRewrite.get(x);
  if (rewrite !== undefined) return rewrite(x.host, upstream);
  return upstream.isNamed ? upstream.authority : x.host;
}

async function proxy(x: RequestContext, upstream: Upstream): Promise<Reply> {
  x.endpoint = upstream.address;
  // A small body as one buffer costs half of what a stream of it does (measured: 86 and 54 µs a request).
  const length = Number(x.request.headers['content-length'] ?? 0);
  if (length > 0 && length <= LIMITS.smallBody) await x.body.capture(LIMITS.smallBody);
  const headers = withoutFields(x.headers.raw, NOT_FORWARDED);
  const authority = hostFor(x, upstream);
  headers.push('host', authority);
  const body = x.body.forUpstream();
  const timeouts = backendTimeouts.get(x);
  const sent = upstream.relay({
    method: x.method,
    path: x.path + x.query,
    headers,
    body:
      x.observer === undefined
        ? body
        : x.observer.sending({ headers, path: x.path + x.query, authority, body }),
    client: x,
    bodyIdle: timeouts?.idle ?? LIMITS.backendIdle,
    ...(timeouts?.request === undefined ? {} : { timeout: timeouts.request }),
  });
  const answer = await (x.observer === undefined ? sent : x.observer.call(upstream.address, sent));
  x.reason = 'Upstream';
  answer.body.watcher = x;
  const reply: Reply = {
    status: answer.status,
    headers: answer.headers,
    body: answer.body,
  };
  x.observer?.responseSnapshot('raw response', reply);
  return reply;
}
