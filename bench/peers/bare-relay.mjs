// A minimal reverse proxy on Node.js: no routing, no checks, no logs, no limits. The reference for the cost of a
// gateway that has all of those.
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { answerTo, forwarded } from './forward.mjs';

const upstream = process.argv[2];
const { host } = new URL(upstream);
const pool = new Pool(upstream, { pipelining: 1 });

const server = createServer({ noDelay: true }, (request, response) => {
  const hasBody = request.headers['content-length'] !== undefined;
  const options = {
    method: request.method,
    path: request.url,
    headers: [...forwarded(request.rawHeaders), 'host', host],
    body: hasBody ? request : null,
  };
  pool.dispatch(options, answerTo(response));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
