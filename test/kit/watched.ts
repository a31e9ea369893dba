import { tmpdir } from 'node:os';
import { createLog } from '../../src/core/log.ts';
import type { PolicyAction, TraceMessage } from '../../src/core/trace/event.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { handleRequest } from '../../src/server/kernel/pipeline.ts';
import type { RequestContext } from '../../src/server/kernel/request/request-context.ts';
import { TraceObserver } from '../../src/server/observe/trace/trace-observer.ts';
import { buildRuntime } from '../../src/server/runtime/runtime.ts';
import { openListener } from '../../src/server/transport/listener/listener.ts';
import { routesConfig } from './routes.ts';

/** What a policy told of one request. */
export interface PolicyStep {
  /** Its key in the configuration. */
  readonly kind: string;
  readonly action: PolicyAction;
  readonly reason: string;
  readonly snapshot?: object;
}

export interface WatchedRoute extends AsyncDisposable {
  readonly url: string;
  /** What the policies reported of all requests, in order. */
  readonly events: readonly PolicyStep[];
  /** Events of one policy. */
  of(kind: string): Omit<PolicyStep, 'kind'>[];
  /** The exchanges themselves. */
  readonly exchanges: readonly RequestContext[];
}

/**
 * A real listener and the real request flow for one route with these policies, whose exchanges are watched.
 * `prepare` stands in for what an earlier policy would have found out, such as the claims of a token.
 */
export async function watchedRoute(
  policies: object,
  { prepare, backends }: { prepare?: (ctx: RequestContext) => void; backends?: readonly object[] } = {},
): Promise<WatchedRoute> {
  const route =
    backends === undefined ? { policies: { directResponse: {}, ...policies } } : { policies, backends };
  const { config, source, diagnostics } = loadConfigText(routesConfig([route]), 'test.yaml', {});
  if (config === undefined) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  const log = createLog(
    { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
    'error',
    'text',
  );
  const { runtime, diagnostics: problems } = await buildRuntime({
    config,
    source,
    log,
    folder: tmpdir(),
    env: {},
  });
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  const [served] = runtime.gateways;
  if (served === undefined) throw new Error('the configuration has no gateway');
  const events: PolicyStep[] = [];
  const exchanges: RequestContext[] = [];
  const listener = await openListener({
    listener: 'default',
    port: 0,
    address: '127.0.0.1',
    limits: runtime.settings.limits,
    handle(ctx) {
      ctx.observer = new TraceObserver(ctx, {
        event: ({ message }) => events.push(...stepOf(message)),
        ended: () => undefined,
      });
      exchanges.push(ctx);
      prepare?.(ctx);
      return handleRequest(ctx, served);
    },
    ended: () => undefined,
  });
  return {
    url: `http://127.0.0.1:${listener.port}`,
    events,
    exchanges,
    of: (kind) => events.filter((event) => event.kind === kind).map(({ kind: _, ...step }) => step),
    [Symbol.asyncDispose]: async () => {
      await listener.close(0);
      await runtime.close();
    },
  };
}

function stepOf(message: TraceMessage): PolicyStep[] {
  if (message.type === 'authorizationResult') {
    const { policy = '', reason = '', result, item } = message;
    const action = result === 'allow' ? 'apply' : 'deny';
    return [{ kind: policy, action, reason, ...(item === undefined ? {} : { snapshot: item }) }];
  }
  if (message.type !== 'policy') return [];
  const { policy = '', action = 'apply', result } = message;
  if (result.type === 'skip') return [{ kind: policy, action, reason: result.reason }];
  const { details: reason, snapshot } = result;
  return [{ kind: policy, action, reason, ...(snapshot === null ? {} : { snapshot }) }];
}
