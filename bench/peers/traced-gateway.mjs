// A gateway of this checkout in a process of its own, whose requests can be traced: argv is its configuration file and
// the port for `/debug/trace`. Built like `agctl serve`, without its command line.
import { createServer } from 'node:http';
import { pipeline } from 'node:stream';
import { fileSink } from '../../src/core/file-sink.ts';
import { createLog } from '../../src/core/log.ts';
import { EVENT_STREAM_HEADERS } from '../../src/core/sse.ts';
import { loadConfigText, readConfigFile } from '../../src/server/config/load.ts';
import { openTraceStream } from '../../src/server/observe/trace-stream.ts';
import { startGateway } from '../../src/server/runtime/gateway.ts';
import { compileRuntime } from '../../src/server/runtime/runtime.ts';

const [file, tracePort] = process.argv.slice(2);
const { config, source } = loadConfigText(readConfigFile(file), file, {});
const log = createLog(fileSink(2), 'info', 'text');
const { runtime } = compileRuntime({ config, source, log, folder: '/', env: {} });
const { listeners, traceSubscribers } = await startGateway({ runtime, log, accessLog: fileSink(1) });
const admin = createServer((request, response) => {
  const query = new URL(request.url, 'http://localhost').searchParams;
  const expression = query.get('expression') ?? undefined;
  const { stream } = openTraceStream(traceSubscribers, { expression, follow: query.has('follow') });
  pipeline(stream, response.writeHead(200, EVENT_STREAM_HEADERS), () => undefined);
});
admin.listen(Number(tracePort), '127.0.0.1', () => {
  process.stderr.write(`listening on ${listeners[0].port}\n`);
});
process.on('SIGTERM', () => process.exit());
