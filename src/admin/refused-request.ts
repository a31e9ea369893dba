import type { IncomingMessage } from 'node:http';
import { auditOf } from '../server/audit/audit.ts';
import { callerOf } from './caller.ts';
import type { Admin } from './sources.ts';

/**
 * Writes the event of a request that is refused before its endpoint is known, because of where it comes from. `why` in words. The
 * answer does not wait for it.
 */
export function auditRefused(request: IncomingMessage, admin: Admin, why: string): void {
  const { runtime } = admin.served();
  const { actor, from } = callerOf(request, admin) ?? {
    actor: { kind: 'unknown' },
    from: { address: admin.isUnixSocket ? 'unix' : (request.socket.remoteAddress ?? '') },
  };
  const { method = '', url = '', headers } = request;
  const redactor = admin.redactor();
  void auditOf.get(runtime.settings)?.record({
    action: 'admin.request',
    outcome: 'refused',
    actor,
    from,
    target: redactor.text(`${method} ${url.replace(/[?#].*$/, '')}`),
    detail: redactor.text(`${why}; Host: ${headers.host ?? 'none'}, Origin: ${headers.origin ?? 'none'}`),
  });
}
