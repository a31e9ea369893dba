// LiteLLM, whose translations are compared with those of the gateway; installed here from PyPI.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

// The Responses API of LiteLLM imports mcp.
const packages = ['litellm==1.106.2', 'mcp==2.3.0'];

export function missing() {
  try {
    execFileSync('python3', ['-c', 'import sys, venv, ensurepip; assert sys.version_info >= (3, 11)'], {
      stdio: 'ignore',
    });
  } catch {
    return 'Python 3.11 or newer with venv is not installed';
  }
  return undefined;
}

export async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-litellm-'));
  const python = join(folder, 'bin/python');
  const stop = async () => rmSync(folder, { recursive: true, force: true });
  const run = (file, args) => promisify(execFile)(file, args, { timeout: 600_000 });
  try {
    await run('python3', ['-m', 'venv', folder]);
    await run(python, ['-m', 'pip', 'install', '--quiet', ...packages]);
  } catch (error) {
    await stop();
    throw new Error(`the Python packages could not be installed: ${error.stderr || error.message}`);
  }
  return { env: { LITELLM_PYTHON: python }, stop };
}
