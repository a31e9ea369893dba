// The least that a reverse proxy on Node can do: no routing, no checks, no logs, no limits. What a gateway with
// all of those costs is measured against this.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const upstream = process.argv[2];
const { host } = new URL(upstream);
const pool = new Pool(upstream, { pipelining: 1 });
const CONNECTION_FIELDS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host']);

function forwarded(raw) {
  const kept = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].toString();
    if (!CONNECTION_FIELDS.has(name.toLowerCase())) kept.push(name, raw[i + 1].toString());
  }
  return kept;
}

const server = createServer({ noDelay: true }, (request, response) => {
  const hasBody = request.headers['content-length'] !== undefined;
  const options = {
    method: request.method,
    path: request.url,
    headers: [...forwarded(request.rawHeaders), 'host', host],
    body: hasBody ? request : null,
  };
  pool.dispatch(options, {
    onRequestStart() {},
    onResponseStart(controller, status) {
      response.writeHead(status, forwarded(controller.rawHeaders));
    },
    onResponseData(controller, chunk) {
      if (response.write(chunk)) return;
      controller.pause();
      response.once('drain', () => controller.resume());
    },
    onResponseEnd() {
      response.end();
    },
    onResponseError() {
      response.destroy();
    },
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
