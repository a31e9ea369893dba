// Odd requests, sent to nginx and to the gateway: nothing may get further here than there.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
const nginx = folders.map((folder) => join(folder, 'nginx')).find((path) => existsSync(path));

export function missing() {
  return nginx === undefined ? 'there is no nginx on this machine' : undefined;
}

export async function start() {
  return { env: { NGINX: nginx }, stop: async () => undefined };
}
