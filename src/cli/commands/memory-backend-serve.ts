import { fileSink } from '../../core/file-sink.ts';
import { createLog } from '../../core/log.ts';
import { VERSION } from '../../core/version.ts';
import type { Run } from '../context.ts';
import { type BackendOptions, openBackend } from '../memory/backend.ts';
import { portFrom } from '../memory/options.ts';
import { drain, listen, untilStopped } from '../memory/service.ts';

interface Options extends BackendOptions {
  readonly port?: string;
  readonly host: string;
}

const STDERR = 2;
const DEFAULT_PORT = 3006;

/**
 * Runs the memory backend until a signal stops it. It answers requests immediately, while the documents are still being
 * read.
 */
export const run: Run<Options> = async ({ port, host, ...options }, context) => {
  const started = performance.now();
  const chosenPort = portFrom(port, context, 'PORT', DEFAULT_PORT);
  const sink = fileSink(STDERR);
  const log = createLog(sink, 'info', 'text');
  const { app, memories, lines } = await openBackend(options, context, log, host);
  const origin = await listen(app, host, chosenPort).catch(async (error: unknown) => {
    await memories.close();
    throw error;
  });
  const close = async (): Promise<void> => {
    await drain(app);
    await memories.close();
  };
  // Before the banner, because its reader may stop the service immediately.
  const stopped = untilStopped(close, log, context);
  context.stderr.write(
    `agctl ${VERSION}   memory backend\n\n` +
      `  api       ${origin}/api/memory\n  ui        ${origin}/ui/\n${lines.map((line) => `  ${line}\n`).join('')}\n` +
      `ready in ${Math.round(performance.now() - started)} ms. Ctrl-C stops after open requests finish; a second Ctrl-C stops now.\n`,
  );
  void memories.start();
  const code = await stopped;
  await sink.flush();
  return code;
};
