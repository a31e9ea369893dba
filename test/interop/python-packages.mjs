import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The `missing` and `start` of a suite that needs packages from PyPI: the path of their Python is in `variable`. */
export function pythonPackages(variable, packages) {
  const missing = () => {
    try {
      execFileSync('python3', ['-c', 'import sys, venv, ensurepip; assert sys.version_info >= (3, 11)'], {
        stdio: 'ignore',
      });
    } catch {
      return 'Python 3.11 or newer with venv is not installed';
    }
    return undefined;
  };
  const start = async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agctl-python-'));
    const python = join(folder, 'bin/python');
    const stop = async () => rmSync(folder, { recursive: true, force: true });
    const run = (file, args) => promisify(execFile)(file, args, { timeout: 1_800_000 });
    try {
      await run('python3', ['-m', 'venv', folder]);
      await run(python, ['-m', 'pip', 'install', '--quiet', ...packages]);
    } catch (error) {
      await stop();
      throw new Error(`the Python packages could not be installed: ${error.stderr || error.message}`);
    }
    return { env: { [variable]: python }, stop };
  };
  return { missing, start };
}
