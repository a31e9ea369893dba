// nginx as the upstream of `bench scale`: fixed replies in one process, from a configuration of its own.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, start } from '../harness/processes.mjs';
import { CORES } from './cores.mjs';

const ITEM = JSON.stringify({ id: 'bench', text: 'x'.repeat(600 - 24) });
/** A completion as a provider sent it. */
const COMPLETION = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'bench-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(350) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
});

/** Starts nginx in the foreground. Resolves to `{ pid, port, stop }`. */
export async function startNginx(folder) {
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join(' ');
  writeFileSync(
    file,
    `daemon off; master_process off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr crit;
     events { worker_connections 4096; }
     http {
       access_log off; ${temp}
       keepalive_requests 1000000000; keepalive_timeout 1h; default_type application/json;
       server {
         listen 127.0.0.1:${port} backlog=4096;
         location / { return 200 '${ITEM}'; }
         location /v1/chat/completions { return 200 '${COMPLETION}'; }
       }
     }\n`,
  );
  return start('nginx', ['-p', folder, '-e', 'stderr', '-c', file], { core: CORES, ready: port });
}
