import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/go/bin'];
const go = folders.map((folder) => join(folder, 'go')).find((path) => existsSync(path));

/**
 * The `missing` and `start` of a suite whose folder is a Go program: it is built, and its path is in `variable`.
 *
 * @param others import paths of more programs in modules that it requires, by the variable for the path of each
 */
export function goProgram(folder, variable, others = {}) {
  const missing = () => (go === undefined ? 'Go is not installed' : undefined);
  const start = async () => {
    const built = mkdtempSync(join(tmpdir(), 'agctl-go-'));
    const programs = Object.entries({ [variable]: '.', ...others });
    const env = Object.fromEntries(programs.map(([name]) => [name, join(built, name)]));
    const stop = async () => rmSync(built, { recursive: true, force: true });
    try {
      // A first build downloads the modules and compiles the standard library.
      for (const [name, source] of programs)
        await promisify(execFile)(go, ['build', '-o', env[name], source], {
          cwd: folder,
          env: { ...process.env, GOTOOLCHAIN: 'local' },
          timeout: 600_000,
        });
    } catch (error) {
      await stop();
      throw new Error(`the Go program could not be built: ${error.stderr || error.message}`);
    }
    return { env, stop };
  };
  return { missing, start };
}
