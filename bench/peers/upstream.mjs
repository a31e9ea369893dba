// The mock upstream: a 600-byte JSON reply to everything. On a bare socket, because it shares its core with the
// load generator, and Node's HTTP server would cost as much as the generator itself.
import { createServer } from 'node:net';

const start = '{"id":"bench","text":"';
const end = '"}';
const body = start + 'x'.repeat(600 - start.length - end.length) + end;
const reply = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Served-By: bench\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
);

/** Length of the first complete request in a text, or 0. */
function requestLength(text) {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return 0;
  const fields = text.slice(0, head);
  if (/^transfer-encoding: *chunked$/im.test(fields)) {
    const last = text.indexOf('0\r\n\r\n', head + 4);
    return last === -1 ? 0 : last + 5;
  }
  const length = head + 4 + Number(/^content-length: *(\d+)$/im.exec(fields)?.[1] ?? 0);
  return length <= text.length ? length : 0;
}

const server = createServer({ noDelay: true }, (socket) => {
  let rest = '';
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    rest += chunk.latin1Slice();
    for (let length = requestLength(rest); length > 0; length = requestLength(rest)) {
      rest = rest.slice(length);
      socket.write(reply);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
