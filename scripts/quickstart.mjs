// `npm start`: builds, then serves examples/quickstart.yaml and says what to try next.
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, run } from './run.mjs';

run('tsc', ['-p', 'tsconfig.json']);
run(process.execPath, ['scripts/build-web.mjs']);
const folder = mkdtempSync(join(tmpdir(), 'agctl-quickstart-'));
writeFileSync(join(folder, 'hello.txt'), 'Hello from the folder that the files target may read.\n');

const gateway = spawn(
  process.execPath,
  [join(root, 'bin/agctl.js'), 'serve', '-f', 'examples/quickstart.yaml'],
  {
    cwd: root,
    env: { ...process.env, QUICKSTART_DIR: folder },
    stdio: ['inherit', 'inherit', 'pipe'],
  },
);
let told = false;
let seen = '';
gateway.stderr.on('data', (chunk) => {
  process.stderr.write(chunk);
  seen += chunk;
  if (told || !seen.includes('ready in')) return;
  told = true;
  const [port, llmPort] = [...seen.matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)].map(([, number]) => number);
  process.stderr.write(nextSteps(port, llmPort, folder));
});
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => signal === 'SIGTERM' && gateway.kill(signal));
gateway.on('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});

function nextSteps(port, llmPort, files) {
  const url = `http://127.0.0.1:${port}/mcp`;
  return `
Two MCP servers now answer at ${url}
  everything   tools are called everything_*
  files        tools are called files_*, limited to ${files}

Try, in another terminal:

  node examples/call-tool.mjs ${url}
      lists all tools and calls one of each server

  node examples/call-tool.mjs ${url} everything_echo '{"message":"hi"}'

  curl -i ${url} -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \\
    -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}'

An OpenAI-compatible endpoint answers at http://127.0.0.1:${llmPort}/v1 with a model that repeats what it is told:

  curl http://127.0.0.1:${llmPort}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model":"any","messages":[{"role":"user","content":"hello"}]}'

Or give the first address to your MCP client (transport: Streamable HTTP). Access-log lines appear below.

`;
}
