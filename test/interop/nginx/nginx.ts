import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../kit/folder.ts';
import { until } from '../../kit/until.ts';

/** nginx in front of a service on this port of 127.0.0.1. It listens on a unix socket: it cannot take any free port. */
export async function startNginx(backend: number): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'nginx.sock');
  const file = join(folder.path, 'nginx.conf');
  await writeFile(file, configuration(folder.path, path, backend));
  const child = spawn(process.env['NGINX'] as string, ['-p', folder.path, '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await folder[Symbol.asyncDispose]();
  };
  try {
    await until(() => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`);
      return existsSync(path);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { path, [Symbol.asyncDispose]: stop };
}

/**
 * The defaults of nginx, but for limits: how much it takes is not what is compared. Time-outs are short because requests
 * that never become complete are among the cases.
 */
const configuration = (folder: string, socket: string, backend: number): string => `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_header_timeout 1s;
  client_body_timeout 1s;
  keepalive_timeout 1s;
  large_client_header_buffers 8 64k;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen unix:${socket};
    location / {
      proxy_pass http://127.0.0.1:${backend};
      proxy_http_version 1.1;
      proxy_set_header X-Front nginx;
    }
  }
}
`;
