import { createAdapter } from '../../adapter/adapter.ts';
import { createBackend } from '../../adapter/backend/backend.ts';
import { httpTransport } from '../../adapter/backend/transport.ts';
import { dashboardUrl, memoryApiUrl } from '../../adapter/base-url.ts';
import { fileSink } from '../../core/file-sink.ts';
import { createLog } from '../../core/log.ts';
import { VERSION } from '../../core/version.ts';
import type { Run } from '../context.ts';
import { type BackendOptions, openBackend } from '../memory/backend.ts';
import { adapterAccessFrom, allowedHostsFrom, portFrom, toolSetFrom } from '../memory/options.ts';
import { drain, listen, untilStopped } from '../memory/service.ts';

interface Options extends BackendOptions {
  readonly port?: string;
  readonly backendPort?: string;
  readonly host: string;
  readonly allowUnauthenticated?: boolean;
}

const STDERR = 2;
const DEFAULT_PORT = 8080;
const DEFAULT_BACKEND_PORT = 3006;

/** Runs adapter and backend in one process. They communicate over HTTP, as they do in separate processes. */
export const run: Run<Options> = async (
  { port, backendPort, host, allowUnauthenticated, ...options },
  context,
) => {
  const started = performance.now();
  const toolSet = toolSetFrom(context);
  const adapterPort = portFrom(port, context, 'PORT', DEFAULT_PORT);
  const apiPort = portFrom(
    backendPort,
    context,
    'MEMORY_BACKEND_PORT',
    DEFAULT_BACKEND_PORT,
    '--backend-port',
  );
  const sink = fileSink(STDERR);
  const log = createLog(sink, 'info', 'text');
  const { rules, warning } = adapterAccessFrom(host, allowUnauthenticated, context, log);
  const { app, memories, key, lines, searchKind } = await openBackend(options, context, log, host);
  const closeBackend = async (): Promise<void> => {
    await drain(app);
    await memories.close();
  };
  try {
    const api = await listen(app, host, apiPort, '--backend-port or MEMORY_BACKEND_PORT');
    const transport = httpTransport(memoryApiUrl(api));
    const backend = createBackend(transport, key);
    const adapter = createAdapter({
      backend,
      log,
      ...rules,
      allowedHosts: allowedHostsFrom(context),
      website: dashboardUrl(memoryApiUrl(api)),
      toolSet,
      searchKind,
    });
    const origin = await listen(adapter, host, adapterPort);
    const close = async (): Promise<void> => {
      // The adapter first, because its open calls still need the backend.
      await drain(adapter);
      await transport.close();
      await closeBackend();
    };
    // Before the banner, because its reader may stop the service immediately.
    const stopped = untilStopped(close, log, context);
    context.stderr.write(
      `agctl ${VERSION}   memory\n\n` +
        `  mcp       ${origin}/mcp\n  api       ${api}/api/memory\n  ui        ${api}/ui/\n${lines.map((line) => `  ${line}\n`).join('')}\n` +
        `${warning}ready in ${Math.round(performance.now() - started)} ms. Ctrl-C stops after open requests finish; a second Ctrl-C stops now.\n`,
    );
    void memories.start();
    const code = await stopped;
    await sink.flush();
    return code;
  } catch (error) {
    await closeBackend();
    throw error;
  }
};
