import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The `missing` and `start` of a suite that needs packages from npm: the path of their folder is in `variable`. */
export function npmPackages(variable, packages) {
  const start = async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agctl-npm-'));
    const stop = async () => rmSync(folder, { recursive: true, force: true });
    try {
      const args = [
        'install',
        '--prefix',
        folder,
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        ...packages,
      ];
      await promisify(execFile)('npm', args, { cwd: folder, timeout: 1_800_000 });
    } catch (error) {
      await stop();
      throw new Error(`the npm packages could not be installed: ${error.stderr || error.message}`);
    }
    return { env: { [variable]: folder }, stop };
  };
  return { missing: () => undefined, start };
}
