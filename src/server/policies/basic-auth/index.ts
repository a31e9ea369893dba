import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { AppError, messageOf } from '../../../core/errors.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { credentialLocation, locationSchema } from '../../credentials/location.ts';
import { toCel } from '../../expressions/cel/values.ts';
import { defineVariable } from '../../expressions/variable.ts';
import { Admitter, admitting } from '../../kernel/admission.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';
import type { RereadProblem } from '../../kernel/files/reloaded-file.ts';
import { definePolicy, readsMemberOf } from '../../kernel/policy.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { principal } from '../../kernel/request/shared-slots.ts';
import { Slot } from '../../kernel/slot.ts';
import { FORMAT_NAMES, isPassword, parseUsers, type Users } from './htpasswd.ts';

const schema = z.lazy(() =>
  mapping('Authenticates callers by user name and password (RFC 7617).', {
    htpasswd: z
      .union([
        nonEmpty.meta({ secret: true }),
        z.strictObject({
          file: nonEmpty.describe('File with the users, read again when it changes.'),
        }),
      ])
      .describe(
        'Users and hashes of their passwords, as written by `htpasswd`: inline (with `$$` for each `$`), or `file`.',
      ),
    realm: z
      .string()
      .regex(/^[\x20-\x7e]*$/, { error: 'expected printable ASCII characters' })
      .nullish()
      .describe('Realm that browsers show when they ask for a password; default: `Restricted`.'),
    mode: z
      .enum(['strict', 'optional'])
      .default('optional')
      .describe('`strict`: a valid user is required. `optional`: no credentials or valid ones.'),
    authorizationLocation: locationSchema
      .optional()
      .describe('Location of the credentials in the request; `Authorization: Basic` by default.'),
  }),
);

/** Authenticates callers by password. The credentials are removed from the request, so that backends do not receive them. */
export const basicAuth = definePolicy({
  key: 'basicAuth',
  places: ['gateway', 'route'],
  restrictsClients: true,
  requestExpressions: ['authorizationLocation.expression'],
  schema,
  trace: { kind: 'basic_auth', stage: 'basic auth' },
  sets: {
    isReadBy: (expression) => readsMemberOf('basicAuth', expression),
    missingFrom: (route) => ({
      code: 'AGW0309',
      message: `route \`${route}\` reads \`basicAuth\`, but none of its policies sets it`,
      help: 'add the policy `basicAuth`; until then `basicAuth` is null',
    }),
  },
  compile({ htpasswd, realm, mode, authorizationLocation }, context) {
    if (mode !== 'strict')
      context.report({
        code: 'AGW0304',
        atKey: true,
        message: '`basicAuth` lets requests without credentials through',
        help: 'set `mode: strict` to require them',
      });
    const location = authorizationLocation ?? { header: { name: 'authorization', prefix: 'Basic ' } };
    const credential = credentialLocation(location, context.at('authorizationLocation'));
    const challenge = `Basic realm="${(realm ?? 'Restricted').replace(/["\\]/g, '\\$&')}", charset="UTF-8"`;
    const passwords = new Passwords(readUsers(htpasswd, context), context.settings.limits.passwordChecks);
    const admitter = new Admitter(context.settings, (user) =>
      user === NOBODY ? (mode === 'strict' ? undefined : NOBODY) : passwords.hashOf(user),
    );
    const refuse = (ctx: RequestContext, reason: string): never => {
      ctx.observer?.policy({ kind: 'basicAuth', action: 'deny', reason });
      throw new AppError('basic_auth_failed', {
        message: `basic authentication failure: ${reason}`,
        headers: ['www-authenticate', challenge],
      });
    };
    const at = context.path.join('.');
    context.inspection.bounds.push({
      name: 'basicAuth.checks',
      at,
      max: context.settings.limits.passwordChecks,
      used: () => passwords.checks,
    });
    return {
      identifies: { variable: 'basicAuth', takes: 'a password', isRequired: mode === 'strict' },
      async request(ctx) {
        const given = credential.read(ctx);
        if (given === undefined) {
          if (mode === 'strict') refuse(ctx, 'no basic authentication credentials found');
          ctx.observer?.policy({ kind: 'basicAuth', action: 'skip', reason: 'no credentials' });
          admitter.admit(ctx, NOBODY, NOBODY);
          return undefined;
        }
        ctx.observer?.hide(given);
        const user = await passwords.userOf(given);
        if (user === undefined) return refuse(ctx, 'invalid credentials');
        credential.remove(ctx, given);
        userName.set(ctx, user);
        principal.set(ctx, `basicAuth:${user}`);
        admitter.admit(ctx, user, passwords.hashOf(user));
        ctx.invalidateVariable('basicAuth');
        ctx.observer?.policy({
          kind: 'basicAuth',
          action: 'apply',
          reason: 'the password is valid',
          snapshot: { username: user },
        });
        return undefined;
      },
      ...admitting(admitter),
      ...(typeof htpasswd === 'string'
        ? {}
        : { reloads: [{ file: resolveConfigFile(context.folder, htpasswd.file), changed: reread }] }),
    };

    function reread(): RereadProblem {
      if (typeof htpasswd === 'string') return undefined;
      try {
        const users = parseUsers(readFileSync(resolveConfigFile(context.folder, htpasswd.file), 'utf8'));
        // As when the configuration is read: a file that is being written is empty for a moment.
        if (users.hashes.size === 0) throw new Error('there are no users');
        if (!passwords.replace(users)) return undefined;
        context.log.info('auth', 'users were read', {
          users: users.hashes.size,
          unusable: users.unusable.length,
        });
        return undefined;
      } catch (error) {
        const problem = messageOf(error);
        context.log.warn('auth', 'users could not be read', { problem });
        return problem;
      }
    }
  },
});

function readUsers(htpasswd: z.output<typeof schema>['htpasswd'], context: CompileContext): Users {
  const at = typeof htpasswd === 'string' ? context.at('htpasswd') : context.at('htpasswd', 'file');
  let text = '';
  try {
    text =
      typeof htpasswd === 'string'
        ? htpasswd
        : readFileSync(resolveConfigFile(context.folder, htpasswd.file), 'utf8');
  } catch (error) {
    at.report({
      code: 'AGW0107',
      message:
        (typeof htpasswd === 'string' ? undefined : missingConfigFile(context.folder, htpasswd.file)) ??
        `cannot read the file: ${messageOf(error)}`,
      help: 'set the path of a file that `htpasswd` has written',
    });
    return { hashes: new Map(), unusable: [] };
  }
  const users = parseUsers(text);
  const [line] = users.unusable;
  if (line !== undefined || users.hashes.size === 0)
    at.report({
      code: 'AGW0104',
      message:
        line === undefined
          ? 'there are no users'
          : `line ${line} is not a user with a password hash that is supported`,
      help: `write \`name:hash\` lines with ${FORMAT_NAMES}${typeof htpasswd === 'string' ? '; inline, write `$$` for each `$`' : ''}`,
    });
  return users;
}

/**
 * Checks passwords. Hashes are slow by design, so a valid password is remembered as an HMAC with a key of this object:
 * clients send it with each request.
 */
class Passwords {
  readonly #most: number;
  readonly #key = randomBytes(32);
  #users: Users;
  /** By user: never more than there are users. Replaced with them. */
  #valid = new Map<string, Buffer>();
  checks = 0;

  constructor(users: Users, most: number) {
    this.#users = users;
    this.#most = most;
  }

  /** The hash of the password of a user, if there is one of that name. */
  hashOf(user: string): string | undefined {
    return this.#users.hashes.get(user);
  }

  /** Returns whether the users differ from those before. */
  replace(users: Users): boolean {
    if (isDeepStrictEqual(users, this.#users)) return false;
    this.#users = users;
    this.#valid = new Map();
    return true;
  }

  /**
   * The user of valid credentials (RFC 7617 §2: base64 of name, colon and password), otherwise undefined.
   * Rejects with `overloaded` while `LIMITS.passwordChecks` are under way.
   */
  async userOf(credentials: string): Promise<string | undefined> {
    const text = decode(credentials);
    const colon = text?.indexOf(':') ?? -1;
    if (text === undefined || colon < 0) return undefined;
    const [user, password] = [text.slice(0, colon), text.slice(colon + 1)];
    const [users, valid] = [this.#users, this.#valid];
    const digest = createHmac('sha256', this.#key).update(password).digest();
    const known = valid.get(user);
    if (known !== undefined && timingSafeEqual(known, digest)) return user;
    // The hash of someone else for an unknown user: the time must not tell which users there are.
    const hash = users.hashes.get(user) ?? users.hashes.values().next().value;
    if (hash === undefined) return undefined;
    if (this.checks >= this.#most) throw new AppError('overloaded', { detail: 'too many password checks' });
    this.checks += 1;
    try {
      if (!(await isPassword(password, hash)) || !users.hashes.has(user)) return undefined;
    } finally {
      this.checks -= 1;
    }
    valid.set(user, digest);
    return user;
  }
}

/** Stands for callers without credentials: no user has an empty name with a colon. */
const NOBODY = ':';

/** Undefined for what is not base64 of UTF-8. */
function decode(credentials: string): string | undefined {
  const bytes = Buffer.from(credentials, 'base64');
  const [canonical, given] = [bytes.toString('base64'), credentials].map((text) =>
    text.replace(/={1,2}$/, ''),
  );
  if (canonical !== given) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Name of the authenticated user. */
/** The authenticated user. */
export const userName = new Slot<string>();

export const basicAuthVariable = defineVariable(
  'basicAuth',
  {
    type: 'map',
    doc: 'The authenticated user.',
    members: { username: { type: 'string', doc: 'Name of the user.' } },
  },
  (ctx) => {
    const username = userName.get(ctx);
    return username === undefined ? null : toCel({ username });
  },
);
