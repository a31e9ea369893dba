import { endWithCredential } from '../kernel/admission.ts';
import type { HeaderList } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import type { UpstreamBody } from './upstream/upstream-body.ts';

/**
 * Ends a stream of events of a service, such as those of agents, once the caller of the request is no longer let in: it may last
 * for days. Clients open another one with their next credential. Other responses are as long as they are.
 */
export function endEventsWithCredential(ctx: RequestContext, headers: HeaderList, body: UpstreamBody): void {
  if (/^text\/event-stream\b/i.test(headers.get('content-type') ?? ''))
    endWithCredential(ctx, () => body.cut());
}
