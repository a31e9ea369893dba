// `npm start`: builds, then serves examples/quickstart.yaml and prints what to try next.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, run } from './run.mjs';

/** `npm run dev` has built, and starts this again and again with the same folder. */
const [givenFolder] = process.argv.slice(2);
if (givenFolder === undefined) {
  run(process.execPath, ['scripts/build-program.mjs']);
  run(process.execPath, ['scripts/build-web.mjs']);
}
const folder = givenFolder ?? mkdtempSync(join(tmpdir(), 'agctl-quickstart-'));
if (givenFolder === undefined)
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
writeFileSync(join(folder, 'hello.txt'), 'Hello from the folder that the files target may read.\n');

const agctl = join(root, 'bin/agctl.js');

let gateway;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => {
    if (gateway === undefined) memory.kill();
    // The terminal sends Ctrl-C to the gateway, too.
    else if (signal !== 'SIGINT') gateway.kill('SIGTERM');
  });

// A temporary store; the documents are those of this repository.
const memory = spawn(
  process.execPath,
  [
    agctl,
    'memory',
    'serve',
    '--port',
    '0',
    '--backend-port',
    '0',
    '--data',
    join(folder, 'memory'),
    '--docs',
    'docs',
  ],
  { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] },
);
const [, memoryUrl, dashboard] = await waitForOutput(
  memory,
  /mcp +(http:\S+)[\s\S]*ui +(http:\S+)[\s\S]*ready in/,
);

gateway = spawn(process.execPath, [agctl, 'serve', '-f', 'examples/quickstart.yaml'], {
  cwd: root,
  env: { ...process.env, QUICKSTART_DIR: folder, QUICKSTART_MEMORY_URL: memoryUrl },
  stdio: ['inherit', 'inherit', 'pipe'],
});
let isAnnounced = givenFolder !== undefined;
let seen = '';
gateway.stderr.on('data', (chunk) => {
  process.stderr.write(chunk);
  seen += chunk;
  // Of the banner: a warning may say that a port is already in use.
  if (isAnnounced || !/^ready in /m.test(seen)) return;
  isAnnounced = true;
  const gateways = seen.matchAll(/^ +gateway .*http:\/\/127\.0\.0\.1:(\d+)/gm);
  const [port, llmPort] = [...gateways].map(([, number]) => number);
  process.stderr.write(nextSteps(port, llmPort, folder));
});
gateway.on('exit', (code, signal) => {
  memory.kill();
  process.exitCode = signal === null ? (code ?? 1) : 1;
});

/** Waits for a text on a child's stderr. If the child ends first, prints its output and ends this process. */
function waitForOutput(child, pattern) {
  return new Promise((resolve) => {
    let text = '';
    child.stderr.on('data', (chunk) => {
      text += chunk;
      const found = pattern.exec(text);
      if (found !== null) resolve(found);
    });
    child.on('exit', (code) => {
      if (pattern.test(text)) return;
      process.stderr.write(text);
      process.exit(code ?? 1);
    });
  });
}

function nextSteps(port, llmPort, files) {
  const url = `http://127.0.0.1:${port}/mcp`;
  return `
Three MCP servers now answer at ${url}
  everything   tools are named everything_*
  files        tools are named files_*, limited to ${files}
  memory       tools are named memory_*; its contents are shown at ${dashboard}

Try, in another terminal:

  node examples/call-tool.mjs ${url}
      lists all tools and calls one of each server

  node examples/call-tool.mjs ${url} everything_echo '{"message":"hi"}'

  node examples/call-tool.mjs ${url} memory_search_knowledge '{"query":"how do I sign in with a token"}'
      searches the documents of this repository, which the memory server has ingested

  curl -i ${url} -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \\
    -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}'

An OpenAI-compatible endpoint answers at http://127.0.0.1:${llmPort}/v1 with a model that repeats its input:

  curl http://127.0.0.1:${llmPort}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model":"any","messages":[{"role":"user","content":"hello"}]}'

Or give the first address to your MCP client (transport: Streamable HTTP). Access-log lines appear below.

`;
}
