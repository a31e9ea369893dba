// Profiles of the admin server, read by the tool that they are for.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/go/bin'];
const go = folders.map((folder) => join(folder, 'go')).find((path) => existsSync(path));

export function missing() {
  return go === undefined ? 'Go is not installed' : undefined;
}

export async function start() {
  return { env: { GO: go }, stop: async () => undefined };
}
