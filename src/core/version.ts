import { readFileSync } from 'node:fs';

/** The version in package.json, which is next to `dist/` in the package and next to `src/` in a checkout. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
