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
export function tool(file: string, args: readonly string[], cwd: string = DEPLOY): Promise<Output> {
  return new Promise((resolve, reject) => {
    execFile(file, args, { cwd, maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') reject(error);
      else resolve({ code: Number(error?.code ?? 0), text: stdout + stderr, stdout });
    });
  });
}

/** Tools that the suite has found or fetched. */
export const HELM = env['HELM'] as string;
export const promtool = `${env['PROMETHEUS']}/promtool`;
export const prometheus = `${env['PROMETHEUS']}/prometheus`;
export const pythonTool = (name: string): string => `${env['DEPLOY_TOOLS']}/${name}`;
