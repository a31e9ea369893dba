// A server on node:http with one or two event loops. The argument says how they get their connections: `single`,
// `processes` (the first process accepts, and passes sockets over IPC), `cluster` (node:cluster) or `threads` (each
// thread listens on the port, with `reusePort`).
import { fork } from 'node:child_process';
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const COUNT = 2;
const script = process.argv[1];
const [kind, portOfFirst] = process.argv.slice(2);
const server = createServer({ noDelay: true }, (_request, response) => response.end('ok'));
const print = (port) => console.log(`listening on ${port}`);

function listen(options, listening) {
  server.listen({ host: '127.0.0.1', ...options }, () => listening(server.address().port));
}

const KINDS = {
  single: () => listen({ port: 0 }, print),
  processes() {
    if (process.send !== undefined) {
      process.on('message', (_message, socket) => socket && server.emit('connection', socket));
      process.on('disconnect', () => process.exit(0));
      return;
    }
    const children = Array.from({ length: COUNT }, () => fork(script, [kind]));
    let next = 0;
    const port = createTcpServer({ pauseOnConnect: true, noDelay: true }, (socket) =>
      children[next++ % COUNT].send('', socket),
    );
    port.listen(0, '127.0.0.1', () => print(port.address().port));
  },
  cluster() {
    if (!cluster.isPrimary) return listen({ port: 0 }, (port) => process.send({ port }));
    const workers = Array.from({ length: COUNT }, () => cluster.fork());
    let ready = 0;
    for (const worker of workers)
      worker.on('message', ({ port }) => {
        if (++ready === COUNT) print(port);
      });
  },
  threads() {
    if (!isMainThread)
      return listen({ port: Number(portOfFirst), reusePort: true }, (port) => parentPort.postMessage(port));
    const next = (port, count) => {
      if (count === COUNT) return print(port);
      const worker = new Worker(script, { argv: [kind, String(port)] });
      worker.once('message', (own) => next(own, count + 1));
    };
    next(0, 0);
  },
};
KINDS[kind]();
