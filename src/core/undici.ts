import { createRequire } from 'node:module';

type Undici = typeof import('undici');
let library: Undici | undefined;

/**
 * Loads undici at the first connection to an upstream. Its hundred modules are of no use to `config validate`, which
 * compiles a configuration but connects to nothing, nor to a gateway whose MCP servers are child processes.
 */
export function undici(): Undici {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package
  library ??= createRequire(import.meta.url)('undici') as Undici;
  return library;
}
