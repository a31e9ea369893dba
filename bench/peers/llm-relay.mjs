// A minimal LLM gateway on Node.js: `bare-relay.mjs` that also parses the request and changes a field of it.
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { answerTo, forwarded } from './forward.mjs';

const upstream = process.argv[2];
const { host } = new URL(upstream);
const pool = new Pool(upstream, { pipelining: 1 });

function relay(request, response, text) {
  const body = JSON.parse(text);
  body.max_tokens = 100;
  const options = {
    method: request.method,
    path: request.url,
    headers: [...forwarded(request.rawHeaders, 'content-length'), 'host', host],
    body: JSON.stringify(body),
  };
  pool.dispatch(options, answerTo(response));
}

const server = createServer({ noDelay: true }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => relay(request, response, Buffer.concat(chunks).toString()));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
