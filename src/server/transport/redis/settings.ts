import { z } from 'zod';
import { durationSchema, durationText } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { choice, mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { backendTlsSchema, compileBackendTls } from '../tls/backend-tls.ts';
import type { RedisAddress } from './connection.ts';

const URL_FORM =
  'expected `redis://host:port` or, with TLS, `rediss://host:port`, with `user:password@` and `/database` if needed; in a password, write `@` as `%40`, `:` as `%3A`, `/` as `%2F`, `?` as `%3F`, `#` as `%23` and `%` as `%25`';

const SERVER_FORM = 'expected `host` or `host:port`, such as `sentinel-1.example.com:26379`';

export const sharedSchema = z.lazy(() =>
  mapping(
    'Redis or Valkey, which several gateways with the same configuration share: the counts of `localRateLimit`, MCP sessions, answers of `cache`, and which batches of models were counted.',
    {
      redis: z
        .string()
        .refine((text) => addressIn(text) !== undefined, { error: URL_FORM })
        .meta({ secret: true, examples: ['rediss://:$REDIS_PASSWORD@redis.example.com:6379/0'] })
        .describe(
          'URL of a Redis (6.2 or later) or Valkey server: `redis://`, or `rediss://` with TLS, then `user:password@` if needed, host, port (6379 by default) and `/` with the number of the database (0 by default).',
        ),
      tls: backendTlsSchema
        .optional()
        .describe('TLS of the connections to the server. Files are read when agctl starts.'),
      sentinel: mapping(
        'Redis Sentinel, which names the primary server at each connection. The host in `redis` is then the name of the primary, such as `redis://:password@mymaster`.',
        {
          servers: z
            .array(z.string().refine((text) => serverIn(text) !== undefined, { error: SERVER_FORM }))
            .min(1)
            .describe('`host:port` of each Sentinel (port 26379 by default).'),
          password: nonEmpty
            .optional()
            .meta({ secret: true })
            .describe(
              'Password of the Sentinels, if they have one. With `rediss:`, they are connected to with TLS.',
            ),
        },
      ).optional(),
      prefix: z
        .string()
        .regex(/^[A-Za-z0-9._-]{1,64}$/, { error: 'expected 1 to 64 letters, digits, `.`, `_` or `-`' })
        .default('agctl')
        .describe(
          'First part of all keys. Gateways that share a server but not their limits have different ones.',
        ),
      timeout: durationSchema
        .refine((value) => value >= 1 && value <= LIMITS.storeTimeoutMax, {
          error: `expected a duration from 1ms to ${durationText(LIMITS.storeTimeoutMax)}`,
        })
        .prefault(durationText(LIMITS.storeTimeout))
        .describe(
          'How long a request waits for the server. Then `failureMode` applies, without waiting, until the server answers again.',
        ),
      failureMode: z
        .strictObject({
          rateLimits: choice(
            'Requests with `localRateLimit`: `local` counts them in this gateway only, `failClosed` rejects them with status 503.',
            ['local', 'failClosed'],
            'local',
          ),
          sessions: choice(
            'Requests of MCP sessions: `failOpen` continues them by what their ids contain, also those that have ended; `failClosed` rejects them with status 503. Those of browsers (`oidc`) likewise.',
            ['failOpen', 'failClosed'],
            'failOpen',
          ),
        })
        .prefault({})
        .describe('What happens while the server is not available.'),
    },
  ),
);

export type SharedConfig = z.output<typeof sharedSchema>;

/** The parts of the URL; undefined if it is none of Redis. */
function addressIn(text: string): Omit<RedisAddress, 'tls' | 'sentinel'> | undefined {
  if (!/^rediss?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return undefined;
  const { hostname, port, username, password, pathname, search, hash } = new URL(text);
  const database = /^\/?(\d{0,5})$/.exec(pathname)?.[1];
  if (hostname === '' || database === undefined || search + hash !== '') return undefined;
  try {
    return {
      // IPv6 addresses are in brackets.
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? 6379 : Number(port),
      username: username === '' ? undefined : decodeURIComponent(username),
      password: password === '' ? undefined : decodeURIComponent(password),
      database: Number(database),
    };
  } catch {
    // An escape that is not UTF-8.
    return undefined;
  }
}

function serverIn(text: string): { readonly host: string; readonly port: number } | undefined {
  const url = URL.parse(`redis://${text}`);
  if (url === null || url.host !== text || url.hostname === '') return undefined;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: url.port === '' ? 26_379 : Number(url.port) };
}

/** Where to connect, and how. Reports problems of `tls` and `sentinel`. */
export function compileAddress(
  { redis, tls, sentinel }: SharedConfig,
  context: CompileContext,
): RedisAddress {
  const address = addressIn(redis);
  if (address === undefined) throw new Error('the schema has accepted the URL');
  const hasTls = /^rediss:/i.test(redis);
  if (tls !== undefined && !hasTls)
    context.at('tls').report({
      code: 'AGW0105',
      message: '`tls` has no effect: the URL begins with `redis:`',
      label: 'only `rediss:` connects with TLS',
      help: 'write `rediss:` in the URL, or remove `tls`',
      atKey: true,
    });
  const options = tls === undefined ? {} : compileBackendTls(tls, context.at('tls'));
  if (sentinel !== undefined && new URL(redis).port !== '')
    context.at('sentinel').report({
      code: 'AGW0105',
      message: 'the URL has a port, which has no effect: Sentinel names the server',
      help: 'remove the port; the host is the name of the primary in Sentinel',
      atKey: true,
    });
  const servers = sentinel?.servers.flatMap((text) => serverIn(text) ?? []);
  return {
    ...address,
    tls: hasTls ? options : undefined,
    sentinel: servers && { servers, password: sentinel?.password },
  };
}
