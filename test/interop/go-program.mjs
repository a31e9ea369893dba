import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/go/bin'];
const go = folders.map((folder) => join(folder, 'go')).find((path) => existsSync(path));

/** The `missing` and `start` of a suite whose folder is a Go program: it is built, and its path is in `variable`. */
export function goProgram(folder, variable) {
  const missing = () => (go === undefined ? 'Go is not installed' : undefined);
  const start = async () => {
    const built = mkdtempSync(join(tmpdir(), 'agctl-go-'));
    const program = join(built, 'interop');
    const stop = async () => rmSync(built, { recursive: true, force: true });
    try {
      // A first build downloads the modules and compiles the standard library.
      await promisify(execFile)(go, ['build', '-o', program, '.'], {
        cwd: folder,
        env: { ...process.env, GOTOOLCHAIN: 'local' },
        timeout: 600_000,
      });
    } catch (error) {
      await stop();
      throw new Error(`the Go program could not be built: ${error.stderr || error.message}`);
    }
    return { env: { [variable]: program }, stop };
  };
  return { missing, start };
}
