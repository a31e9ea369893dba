import type { Readable } from 'node:stream';
import type { BackendRequest, RequestObserver } from '../../kernel/observer.ts';
import type { Policy, Reply, RequestContext, Route } from '../../kernel/request-context.ts';
import { tapUpload } from './body-tap.ts';
import { tracePassed, traceResponse, traceRoute } from './stages.ts';
import { Tracer } from './tracer.ts';

/** Converts the pipeline's notifications about a request into trace events. */
export class TraceObserver extends Tracer implements RequestObserver {
  routed(routes: readonly Route[], selected: Route | undefined): void {
    traceRoute(this, this.context, routes, selected);
  }

  policiesPassed(route: Route): void {
    tracePassed(this, route);
  }

  responding(ctx: RequestContext, reply: Reply, entered: readonly Policy[]): void {
    traceResponse(this, ctx, reply, entered);
  }

  sending<B extends null | string | Uint8Array | Readable>({
    headers,
    path,
    authority,
    body,
  }: BackendRequest<B>): B | Readable {
    this.requestSnapshot('final request', { headers, path, authority });
    if (this.isBrief) return body;
    return tapUpload(body, (tap, isStream) => this.uploaded(tap, isStream));
  }
}
