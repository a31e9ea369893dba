import { readFileSync } from 'node:fs';

/** The version in package.json, which is beside `dist/` in the package and beside `src/` in a checkout. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
