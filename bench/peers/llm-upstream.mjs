// The mock provider of LLM benchmarks, on a bare socket like `upstream.mjs`: a chat completion, of 600 bytes or as long as
// the request, or a stream of 200 events, each in a write of its own and as fast as they are taken. With `--numbered
// <events> <per second>`, streams of events that carry the mark of their request and their number, at that pace.
import { createServer } from 'node:net';

const FRAMES = 200;
const numbered = process.argv[2] === '--numbered';
const [count, perSecond] = process.argv.slice(3).map(Number);

const completion = (content) =>
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'bench-1',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
  });
const whole = (length) => {
  const body = completion('x'.repeat(Math.max(0, length - completion('').length)));
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
};
const SMALL = whole(600);
const LARGE = whole(100_000);

const HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
);
const chunked = (text) => Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
const event = (choices, more = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'bench-1', choices, ...more })}\n\n`;
const said = (content) => event([{ index: 0, delta: { content }, finish_reason: null }]);
const FRAME = chunked(said(' token'));
const usage = { prompt_tokens: 12, completion_tokens: FRAMES, total_tokens: 12 + FRAMES };
const LAST = Buffer.concat([
  chunked(event([{ index: 0, delta: {}, finish_reason: 'stop' }])),
  chunked(event([], { usage })),
  chunked('data: [DONE]\n\n'),
  Buffer.from('0\r\n\r\n'),
]);

function stream(socket, left) {
  if (socket.destroyed) return;
  if (left === 0) socket.write(LAST);
  else if (socket.write(FRAME)) setImmediate(stream, socket, left - 1);
  else socket.once('drain', () => stream(socket, left - 1));
}

function numberedStream(socket, mark) {
  let number = 0;
  const timer = setInterval(() => {
    if (number < count) socket.write(chunked(said(` ${mark}:${number++}`)));
    else {
      clearInterval(timer);
      socket.write(LAST);
    }
  }, 1_000 / perSecond);
  socket.once('close', () => clearInterval(timer));
}

function answer(socket, text) {
  if (!/"stream": ?true/.test(text.slice(-4_000))) socket.write(text.length > 50_000 ? LARGE : SMALL);
  else {
    socket.write(HEAD);
    if (numbered) numberedStream(socket, /"user": ?"([^"]+)"/.exec(text)?.[1]);
    else stream(socket, FRAMES);
  }
}

/** Length of the first complete request in a text, or 0. */
function requestLength(text) {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return 0;
  const fields = text.slice(0, head);
  if (/^transfer-encoding: *chunked$/im.test(fields)) {
    const last = text.indexOf('\r\n0\r\n\r\n', head);
    return last === -1 ? 0 : last + 7;
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
      const text = rest.slice(0, length);
      rest = rest.slice(length);
      answer(socket, text);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
