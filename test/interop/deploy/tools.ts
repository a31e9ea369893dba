import { execFile } from 'node:child_process';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';

/** Root folder of the project. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const DEPLOY = `${ROOT}deploy/`;

export interface Output {
  readonly code: number;
  /** Standard output and standard error. */
  readonly text: string;
  readonly stdout: string;
}

/** Runs a program to its end, whatever its exit code. */
export const tool = (file: string, args: readonly string[], cwd: string = DEPLOY): Promise<Output> =>
  run(file, args, cwd, '');

/** The same with `input` on its standard input. */
export const toolWith = (input: string, file: string, args: readonly string[]): Promise<Output> =>
  run(file, args, DEPLOY, input);

function run(file: string, args: readonly string[], cwd: string, input: string): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, { cwd, maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') reject(error);
      else resolve({ code: Number(error?.code ?? 0), text: stdout + stderr, stdout });
    });
    child.stdin?.end(input);
  });
}

/** Tools that the suite has found or fetched. */
/** Folder with the resource definitions of the Gateway API; undefined without Go to fetch them. */
export const GATEWAY_API = env['GATEWAY_API'];
export const HELM = env['HELM'] as string;
export const promtool = `${env['PROMETHEUS']}/promtool`;
export const prometheus = `${env['PROMETHEUS']}/prometheus`;
export const pythonTool = (name: string): string => `${env['DEPLOY_TOOLS']}/${name}`;
