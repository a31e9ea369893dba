import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/go/bin'];
const go = folders.map((folder) => join(folder, 'go')).find((path) => existsSync(path));

/**
 * The `missing` and `start` of a suite whose folder has a `go.mod`: Go programs are built.
 *
 * @param programs what to build, `.` for the folder or a package of a module that it requires, by the variable that then
 *   has the path of the program
 */
export function goPrograms(folder, programs) {
  const missing = () => (go === undefined ? 'Go is not installed' : undefined);
  const start = async () => {
    const built = mkdtempSync(join(tmpdir(), 'agctl-go-'));
    const env = Object.fromEntries(Object.keys(programs).map((name) => [name, join(built, name)]));
    const stop = async () => rmSync(built, { recursive: true, force: true });
    try {
      // A first build downloads the modules and compiles the standard library.
      for (const [name, source] of Object.entries(programs))
        await promisify(execFile)(go, ['build', '-o', env[name], source], {
          cwd: folder,
          env: { ...process.env, GOTOOLCHAIN: 'local' },
          timeout: 1_800_000,
        });
    } catch (error) {
      await stop();
      throw new Error(`the Go program could not be built: ${error.stderr || error.message}`);
    }
    return { env, stop };
  };
  return { missing, start };
}
