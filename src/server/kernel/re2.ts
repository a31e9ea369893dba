import { createRequire } from 'node:module';

type Re2 = typeof import('re2js').RE2JS;
let library: Re2 | undefined;

/** Loads re2js at the first pattern: 230 KB, and few configurations have one. */
export function re2(): Re2 {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package
  library ??= (createRequire(import.meta.url)('re2js') as typeof import('re2js')).RE2JS;
  return library;
}
