// Requests of `bench llm`, and how each gateway is configured with the provider's address.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_PORTS } from './harness/own-ports.mjs';

const HEADERS = {
  'content-type': 'application/json',
  authorization: 'Bearer bench',
  'user-agent': 'bench/1.0',
};
const chat = (more, content = 'x'.repeat(100)) =>
  JSON.stringify({ model: 'bench', messages: [{ role: 'user', content }], ...more });

const messages = (more) =>
  JSON.stringify({
    model: 'bench',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'x'.repeat(100) }],
    ...more,
  });

const EVENT = '"delta":{"content"';

/** `plain`: the workload of those that cannot translate, for comparison. */
export const WORKLOADS = {
  small: { what: 'chat, 600-byte reply', body: chat(), connections: [1, 32, 256] },
  large: {
    what: 'chat, 100 KB request and reply',
    body: chat({}, 'x'.repeat(100_000)),
    connections: [32],
  },
  stream: { what: 'streams of 200 events', body: chat({ stream: true }), connections: [32], frames: 200 },
  translated: {
    what: 'messages translated to chat completions, 600-byte reply; others: chat',
    path: '/v1/messages',
    body: messages(),
    mustContain: '"output_tokens"',
    connections: [32],
    plain: 'small',
  },
  'translated-stream': {
    what: 'streams of messages translated from 200 events of chat completions; others: chat',
    path: '/v1/messages',
    body: messages({ stream: true }),
    mustContain: 'message_stop',
    connections: [32],
    frames: 200,
    frame: '"text_delta"',
    plain: 'stream',
  },
};

/** `mustContain` is at the end of every complete response, `frame` in each of the events that are counted. */
export const requestOf = ({ path = '/v1/chat/completions', body, mustContain, frames, frame = EVENT }) => ({
  method: 'POST',
  path,
  headers: HEADERS,
  body,
  mustContain: mustContain ?? (frames === undefined ? '"total_tokens"' : '[DONE]'),
  ...(frames === undefined ? {} : { frames, frame }),
});

/** All default features, one policy, one CEL expression; a provider key in the gateway, as usual. */
export function llmConfig(upstream, more = {}) {
  return {
    config: OWN_PORTS,
    llm: {
      port: 0,
      policies: { authorization: { rules: ['request.headers["user-agent"] == "bench/1.0"'] } },
      models: [
        {
          name: '*',
          provider: 'oaiCompat',
          params: { baseUrl: `http://${upstream}/v1`, apiKey: 'sk-bench' },
          overrides: { max_tokens: 100 },
          ...more,
        },
      ],
    },
  };
}

/** Without buffering, which would collect events; otherwise as in `bench http`. */
export function nginxArgs(folder, port, upstream) {
  const file = join(folder, 'nginx-llm.conf');
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx-llm.pid; error_log stderr crit;
     events { worker_connections 1024; }
     http {
       access_log off; keepalive_requests 1000000000; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
       fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
       client_body_buffer_size 256k;
       upstream mock { server ${upstream}; keepalive 300; keepalive_requests 1000000000; }
       server {
         listen 127.0.0.1:${port};
         location / {
           proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
         }
       }
     }\n`,
  );
  return ['-p', folder, '-c', file];
}

export const portkeyHeaders = (upstream) => ({
  'x-portkey-provider': 'openai',
  'x-portkey-custom-host': `http://${upstream}/v1`,
});
