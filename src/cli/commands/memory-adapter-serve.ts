import { createAdapter } from '../../adapter/adapter.ts';
import { createBackend } from '../../adapter/backend/backend.ts';
import { httpTransport } from '../../adapter/backend/transport.ts';
import { dashboardUrl, memoryApiUrl } from '../../adapter/base-url.ts';
import { fileSink } from '../../core/file-sink.ts';
import { createLog } from '../../core/log.ts';
import { VERSION } from '../../core/version.ts';
import type { Run } from '../context.ts';
import { adapterAccessFrom, allowedHostsFrom, apiKeyFrom, portFrom, toolSetFrom } from '../memory/options.ts';
import { drain, listen, untilStopped } from '../memory/service.ts';

interface Options {
  readonly port?: string;
  readonly host: string;
  readonly allowUnauthenticated?: boolean;
  readonly memoryApiUrl?: string;
}

const STDERR = 2;
const DEFAULT_PORT = 8080;

/**
 * Runs the memory adapter until a signal stops it. The backend need not be available at the start: calls report if it
 * is not.
 */
export const run: Run<Options> = async ({ port, host, memoryApiUrl: url, allowUnauthenticated }, context) => {
  const started = performance.now();
  const toolSet = toolSetFrom(context);
  const base = memoryApiUrl(url ?? context.env['MEMORY_API_URL']);
  const chosenPort = portFrom(port, context, 'PORT', DEFAULT_PORT);
  const transport = httpTransport(base);
  const sink = fileSink(STDERR);
  const log = createLog(sink, 'info', 'text');
  const { rules, warning } = adapterAccessFrom(host, allowUnauthenticated, context, log);
  const app = createAdapter({
    backend: createBackend(transport, apiKeyFrom(context)),
    log,
    ...rules,
    allowedHosts: allowedHostsFrom(context),
    website: dashboardUrl(base),
    toolSet,
  });
  const origin = await listen(app, host, chosenPort);
  const close = async (): Promise<void> => {
    await drain(app);
    await transport.close();
  };
  // Before the banner, because its reader may stop the service immediately.
  const stopped = untilStopped(close, log, context);
  context.stderr.write(
    `agctl ${VERSION}   memory adapter\n\n` +
      `  mcp       ${origin}/mcp\n  health    ${origin}/health\n  backend   ${base.href}\n\n` +
      `${warning}ready in ${Math.round(performance.now() - started)} ms. Ctrl-C stops after open requests finish; a second Ctrl-C stops now.\n`,
  );
  const code = await stopped;
  await sink.flush();
  return code;
};
