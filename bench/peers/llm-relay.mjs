// The least that an LLM gateway on Node can do: `bare-relay.mjs` that also parses the request and changes a field of it.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const upstream = process.argv[2];
const { host } = new URL(upstream);
const pool = new Pool(upstream, { pipelining: 1 });
const CONNECTION_FIELDS = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'host',
  'content-length',
]);

function forwarded(raw) {
  const kept = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].toString();
    if (!CONNECTION_FIELDS.has(name.toLowerCase())) kept.push(name, raw[i + 1].toString());
  }
  return kept;
}

function relay(request, response, text) {
  const body = JSON.parse(text);
  body.max_tokens = 100;
  const options = {
    method: request.method,
    path: request.url,
    headers: [...forwarded(request.rawHeaders), 'host', host],
    body: JSON.stringify(body),
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
}

const server = createServer({ noDelay: true }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => relay(request, response, Buffer.concat(chunks).toString()));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
