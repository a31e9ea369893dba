import { tmpdir } from 'node:os';
import { createLog } from '../../src/core/log.ts';
import type { PolicyEvent, TraceEvent } from '../../src/core/trace.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import type { Exchange } from '../../src/server/http/exchange.ts';
import { openListener } from '../../src/server/http/listener.ts';
import { handleRequest } from '../../src/server/http/pipeline.ts';
import { compileRuntime } from '../../src/server/runtime.ts';
import { routesConfig } from './routes.ts';

export interface WatchedRoute extends AsyncDisposable {
  readonly url: string;
  /** What the stages of all requests reported, in order. */
  readonly events: readonly TraceEvent[];
  /** Events of one policy. */
  of(kind: string): PolicyEvent[];
  /** The exchanges themselves. */
  readonly exchanges: readonly Exchange[];
}

/**
 * A real listener and the real request flow for one route with these policies, whose exchanges are watched.
 * `prepare` stands in for what an earlier policy would have found out, such as the claims of a token.
 */
export async function watchedRoute(
  policies: object,
  { prepare, backends }: { prepare?: (x: Exchange) => void; backends?: readonly object[] } = {},
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
  const { runtime, diagnostics: problems } = compileRuntime({
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
  const events: TraceEvent[] = [];
  const exchanges: Exchange[] = [];
  const listener = await openListener({
    gateway: 'default/default',
    listener: 'default',
    port: 0,
    address: '127.0.0.1',
    handle(x) {
      x.trace = (event) => void events.push(event);
      exchanges.push(x);
      prepare?.(x);
      return handleRequest(x, served.router);
    },
    ended: () => undefined,
  });
  return {
    url: `http://127.0.0.1:${listener.port}`,
    events,
    exchanges,
    of: (kind) =>
      events.filter((event): event is PolicyEvent => event.type === 'policy' && event.kind === kind),
    [Symbol.asyncDispose]: async () => {
      await listener.close(0);
      await runtime.close();
    },
  };
}
