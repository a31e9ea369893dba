import { spawn } from 'node:child_process';
import { env } from 'node:process';
import { text } from 'node:stream/consumers';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';

export interface LlamaServer extends AsyncDisposable {
  readonly url: string;
  /** Values of its metrics, by name. */
  metric(name: string): Promise<number>;
}

/** The answer of the tiny model to everything: six tokens, and the end. */
export const SAYS = 'Hello from a tiny model.';

/** llama.cpp's server with the tiny model and these options. */
export async function llamaServer(...options: string[]): Promise<LlamaServer> {
  const port = await freePort();
  const args = ['--model', env['LLAMA_MODEL'] as string, '--host', '127.0.0.1', '--port', `${port}`];
  const limits = ['--ctx-size', '4096', '--threads', '1', '--parallel', '2', '--metrics', '--offline'];
  const child = spawn(env['LLAMA_SERVER'] as string, [...args, ...limits, ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const log = text(child.stderr);
  const url = `http://127.0.0.1:${port}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error((await log).slice(-2000));
    const reply = await fetch(`${url}/health`).catch(() => undefined);
    return reply?.ok === true;
  };
  await until(isReady, 60_000, 200);
  return {
    url,
    async metric(name) {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      return Number(new RegExp(`^llamacpp:${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await log;
    },
  };
}
