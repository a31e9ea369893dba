import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { agctl, service } from '../../kit/process.ts';
import { until } from '../../kit/until.ts';

interface Gateway extends AsyncDisposable {
  readonly url: string;
}

/** Portkey's gateway, which gets a config object with each call. */
export async function startPortkey(): Promise<Gateway> {
  const port = await freePort();
  const script = join(env['PORTKEY'] as string, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  const child = spawn(process.execPath, [script, `--port=${port}`, '--headless'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...env, TRUSTED_CUSTOM_HOSTS: '127.0.0.1', NODE_ENV: 'production' },
  });
  const log = text(child.stderr);
  const url = `http://127.0.0.1:${port}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error((await log).slice(-2000));
    return (await fetch(url).catch(() => undefined))?.ok === true;
  };
  await until(isReady, 60_000, 100);
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** A gateway with what `agctl init` makes of a config object. */
export async function startImported(config: object): Promise<Gateway> {
  await using stack = new AsyncDisposableStack();
  const folder = await temporaryFolder();
  stack.defer(() => folder.remove());
  writeFileSync(join(folder.path, 'portkey.json'), JSON.stringify(config));
  const port = String(await freePort());
  const options = { cwd: folder.path, env: { HOME: folder.path } };
  const made = await agctl(['init', '--yes', '--from', 'portkey.json', '--port', port], options);
  expect([made.code, made.stderr]).toEqual([0, '']);
  const { url } = stack.use(await service(['serve'], options));
  const all = stack.move();
  return { url, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
