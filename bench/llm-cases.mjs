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

/** `mustContain` is at the end of every complete response. */
export const WORKLOADS = {
  small: { what: 'chat, 600-byte reply', body: chat(), connections: [1, 32, 256] },
  large: {
    what: 'chat, 100 KB request and reply',
    body: chat({}, 'x'.repeat(100_000)),
    connections: [32],
  },
  stream: { what: 'streams of 200 events', body: chat({ stream: true }), connections: [32], frames: 200 },
};

export const requestOf = ({ body, frames }) => ({
  method: 'POST',
  headers: HEADERS,
  body,
  ...(frames === undefined ? { mustContain: '"total_tokens"' } : { frames }),
});

/** All default features, one policy, one CEL expression; a provider key in the gateway, as usual. */
export function llmConfig(upstream) {
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
