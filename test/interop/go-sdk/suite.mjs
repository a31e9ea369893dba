// A client of the official Go SDK, modelcontextprotocol/go-sdk. The program is built here.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/go/bin'];
const go = folders.map((folder) => join(folder, 'go')).find((path) => existsSync(path));

export function missing() {
  return go === undefined ? 'there is no Go on this machine' : undefined;
}

export async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-go-sdk-'));
  const program = join(folder, 'interop');
  const stop = async () => rmSync(folder, { recursive: true, force: true });
  try {
    // A first build downloads the modules and compiles the standard library.
    await promisify(execFile)(go, ['build', '-o', program, '.'], {
      cwd: import.meta.dirname,
      env: { ...process.env, GOTOOLCHAIN: 'local' },
      timeout: 600_000,
    });
  } catch (error) {
    await stop();
    throw new Error(`the Go program could not be built: ${error.stderr || error.message}`);
  }
  return { env: { GO_SDK: program }, stop };
}
