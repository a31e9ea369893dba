import { z } from 'zod';
import { decodedUri } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { formProblem, parameterProblem } from '../../core/postgres-url.ts';
import { mapping } from '../../core/schema/mapping.ts';

/** Where the database is. `path` as written; relative to the folder of the configuration. */
export type DatabaseLocation =
  | { readonly kind: 'sqlite'; readonly path: string; readonly mustExist: boolean }
  | { readonly kind: 'postgres'; readonly url: string };

const FORMS =
  'expected `sqlite://./data.db` (relative to this file), `sqlite:///folder/data.db` or `postgres://host:5432/database` (with user and password before the host)';

/** Reads a URL. Returns what is wrong with it as a string. */
export function parseDatabaseUrl(url: string): DatabaseLocation | string {
  if (/^postgres(?:ql)?:/i.test(url)) {
    const problem = formProblem(url);
    if (problem !== undefined) return problem;
    if ((URL.parse(url)?.pathname.length ?? 0) < 2)
      return 'the name of the database is missing: write it after the host, as in `postgres://host:5432/database`';
    return parameterProblem(url) ?? { kind: 'postgres', url };
  }
  const [, path, query] = /^sqlite:(?:\/\/)?([^?]*)(?:\?(.*))?$/is.exec(url) ?? [];
  if (path === undefined) return FORMS;
  if (path === '' || path.endsWith('/')) return `the name of the file is missing: ${FORMS}`;
  if (path === ':memory:') return 'a database in memory is lost with the process: name a file';
  return parseMode(decodedUri(path), new URLSearchParams(query));
}

/** `mode` is the only parameter: that of sqlite.org/uri.html. */
function parseMode(path: string, parameters: URLSearchParams): DatabaseLocation | string {
  for (const name of parameters.keys())
    if (name !== 'mode') return `the parameter \`${name}\` is not supported: remove it`;
  const mode = parameters.get('mode') ?? 'rwc';
  if (mode !== 'rwc' && mode !== 'rw')
    return `\`mode=${mode}\` is not supported: expected \`rwc\` (the file is created) or \`rw\` (the file must exist)`;
  return { kind: 'sqlite', path, mustExist: mode === 'rw' };
}

/** `config.database`. */
export const databaseSchema = z.lazy(() =>
  mapping('Database for the record of requests, in which `agctl usage` and the admin pages search.', {
    url: z
      .string()
      .superRefine((url, check) => {
        const location = parseDatabaseUrl(url);
        if (typeof location === 'string') check.addIssue({ code: 'custom', message: location });
      })
      .describe(
        'The database: `sqlite://./data.db`, a file relative to the configuration file, which is created (with `?mode=rw` it must exist); `sqlite:///folder/data.db`; or `postgres://user:password@host:5432/database`. Several processes may use one file on a local disk, and several machines one PostgreSQL.',
      ),
    maxConnections: z
      .int()
      .min(1)
      .max(1_000)
      .default(LIMITS.databaseConnections)
      .describe(
        'Maximum number of connections to PostgreSQL, of each process. A SQLite file has one for writing and one for reading.',
      ),
    backups: z
      .int()
      .min(0)
      .max(100)
      .default(LIMITS.databaseBackups)
      .describe(
        'How many copies from before updates are kept beside a SQLite file. One is made before an update of agctl changes its tables; 0 makes none. Copies of `agctl database` are not counted, and never removed. For PostgreSQL, make one with `pg_dump` before an update.',
      ),
  }),
);

export type DatabaseConfig = z.output<typeof databaseSchema>;
