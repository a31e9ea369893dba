import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';

const run = promisify(execFile);
const YAML = JSON.stringify({
  config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
  gateways: { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
});

/** What `go tool pprof -top` says of the profile at a path of the admin server. */
async function top(path: string, work: () => void): Promise<string> {
  await using running = await gateway(YAML, { admin: true });
  await using folder = await temporaryFolder();
  const asked = send(running.admin + path);
  const timer = setInterval(work, 1);
  const { body } = await asked.finally(() => clearInterval(timer));
  const file = join(folder.path, 'profile.pb.gz');
  await writeFile(file, body);
  const { stdout } = await run(process.env['GO'] as string, ['tool', 'pprof', '-top', file], {
    env: { ...process.env, GOTOOLCHAIN: 'local', PPROF_TMPDIR: folder.path },
  });
  return stdout;
}

function burnForPprof(): void {
  const end = performance.now() + 20;
  let sum = 0;
  while (performance.now() < end) sum += Math.sqrt(sum + 1);
}

const kept: string[] = [];
function keepForPprof(): void {
  for (let count = 0; count < 50_000; count += 1) kept.push(`kept ${kept.length}`);
}

describe('go tool pprof', () => {
  test('go tool pprof reads CPU profiles', async () => {
    const text = await top('/debug/pprof/profile?seconds=1', burnForPprof);
    expect(text).toMatch(/^Type: cpu$/m);
    expect(text).toMatch(/s .* burnForPprof$/m);
  });

  test('go tool pprof reads heap profiles', async () => {
    const text = await top('/debug/pprof/heap?seconds=1', keepForPprof);
    expect(text).toMatch(/^Type: inuse_space$/m);
    expect(text).toMatch(/keepForPprof$/m);
  });
});
