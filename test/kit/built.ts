import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Path of something that `npm test` has built. */
export function built(path: string): string {
  const file = fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));
  if (!existsSync(file)) throw new Error(`dist/${path} does not exist: npm run build`);
  return file;
}
