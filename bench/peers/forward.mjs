// Shared by both relays on Node.js: forwards headers except those of the connection, and streams the response.
const OF_THE_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host']);

/** Raw headers without those of the connection and one other. */
export function forwarded(raw, other) {
  const kept = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].toString().toLowerCase();
    if (!OF_THE_CONNECTION.has(name) && name !== other) kept.push(raw[i].toString(), raw[i + 1].toString());
  }
  return kept;
}

/** A handler for undici's `dispatch`: streams the response to the client, with backpressure. */
export function answerTo(response) {
  return {
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
  };
}
