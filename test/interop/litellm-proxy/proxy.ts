import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { env } from 'node:process';
import { text } from 'node:stream/consumers';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';
import { type ChatServer, chatServer } from '../chat-server.ts';

/** The key that LiteLLM's proxy asks for. */
export const PROXY_KEY = 'sk-litellm';

export interface LitellmProxy extends AsyncDisposable {
  readonly url: string;
  /** The server behind its model `chat`. */
  readonly server: ChatServer;
}

/**
 * LiteLLM's proxy with the models `mock`, which it answers itself, and `chat`, which it requests from a server in this
 * process. Its own Messages and Responses APIs are translated to chat completions by it.
 */
export async function litellmProxy(): Promise<LitellmProxy> {
  const server = await chatServer();
  const chat = { model: 'custom_openai/acme', api_base: `http://${server.address}/v1`, api_key: 'sk-any' };
  const proxy = await startProxy(
    JSON.stringify({
      model_list: [
        { model_name: 'mock', litellm_params: { model: 'openai/mock', mock_response: 'It is sunny.' } },
        { model_name: 'chat', litellm_params: chat },
      ],
      litellm_settings: { num_retries: 0, request_timeout: 30 },
      router_settings: { num_retries: 0, disable_cooldowns: true },
      general_settings: { master_key: PROXY_KEY },
    }),
  );
  return {
    url: proxy.url,
    server,
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await server.close();
    },
  };
}

/** LiteLLM's proxy with this `config.yaml`, and these variables besides those of this process. */
export async function startProxy(
  config: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<AsyncDisposable & { readonly url: string }> {
  const port = await freePort();
  const folder = await temporaryFolder();
  const file = join(folder.path, 'config.yaml');
  writeFileSync(file, config);
  const program = join(dirname(env['LITELLM_PROXY_PYTHON'] as string), 'litellm');
  const args = ['--config', file, '--host', '127.0.0.1', '--port', `${port}`, '--telemetry', 'False'];
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: folder.path,
    env: { ...env, LITELLM_LOCAL_MODEL_COST_MAP: 'True', NO_DOCS: 'True', ...variables },
  });
  const log = text(child.stderr);
  const url = `http://127.0.0.1:${port}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error((await log).slice(-2000));
    const reply = await fetch(`${url}/health/liveliness`).catch(() => undefined);
    return reply?.ok === true;
  };
  await until(isReady, 280_000, 200);
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null) await once(child, 'exit');
      await folder.remove();
    },
  };
}
