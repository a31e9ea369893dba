import { createHash } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { credentialLocation, locationSchema, usualLocation } from '../credentials/location.ts';
import { toCel } from '../expressions/cel/values.ts';
import { defineVariable } from '../expressions/variable.ts';
import { definePolicy, readsMemberOf } from '../kernel/policy.ts';
import { allowedModels, principal } from '../kernel/shared-slots.ts';
import { Slot } from '../kernel/slot.ts';

const HASH = /^sha256:[0-9a-f]{64}$/;

const keySchema = z
  .strictObject({
    key: z.string().min(1).optional().meta({ secret: true }).describe('The key itself.'),
    keyHash: z
      .string()
      .regex(HASH, { error: 'expected `sha256:` and 64 lower-case hexadecimal digits' })
      .optional()
      .describe(
        'SHA-256 hash of the key (`sha256:` and hexadecimal digits), so that the file does not contain the key.',
      ),
    metadata: z
      .record(z.string(), z.json())
      .default({})
      .describe('Values that expressions read as `apiKey.<name>`.'),
    allowedModels: z
      .array(z.string())
      .optional()
      .describe('LLM models that this key may use; all by default.'),
  })
  .superRefine(({ key, keyHash }, context) => {
    if ((key === undefined) === (keyHash === undefined)) {
      context.addIssue({
        code: 'custom',
        message: 'expected exactly one of `key`, `keyHash`',
        params: { code: 'AGW0105' },
      });
    }
  });

const schema = z
  .strictObject({
    keys: z.array(keySchema).min(1).describe('Accepted keys.'),
    mode: z
      .enum(['strict', 'optional', 'permissive'])
      .default('optional')
      .describe(
        '`strict`: a valid key is required. `optional`: no key or a valid one. `permissive`: requests are never rejected.',
      ),
    location: locationSchema
      .optional()
      .describe(
        'Location of the key in the request. Default: `Authorization: Bearer`; on routes with models also `x-api-key`, `x-goog-api-key` and `api-key`, which official clients send.',
      ),
  })
  .describe('Authenticates callers by a shared key.');

/** Authenticates callers by shared keys. The key is removed from the request, so that backends do not receive it. */
export const apiKey = definePolicy({
  key: 'apiKey',
  places: ['gateway', 'route'],
  restrictsClients: true,
  requestExpressions: ['location.expression'],
  schema,
  trace: { kind: 'api_key', stage: 'api key' },
  // Upstream's spelling.
  dump: ({ keys, ...rest }) => ({ aPIKey: { ...rest, keys } }),
  sets: {
    isReadBy: (expression) => readsMemberOf('apiKey', expression),
    missingFrom: (route) => ({
      code: 'AGW0309',
      severity: 'warning',
      message: `route \`${route}\` reads \`apiKey\`, but none of its policies sets it`,
      help: 'add the policy `apiKey`; until then `apiKey` is null',
    }),
  },
  compile({ keys, mode, location }, context) {
    if (mode !== 'strict') {
      context.report({
        code: 'AGW0304',
        severity: 'warning',
        atKey: true,
        message: `\`apiKey\` lets requests without ${mode === 'optional' ? 'a key' : 'a valid key'} through`,
        help: 'set `mode: strict` to require one',
      });
    }
    const credential =
      location === undefined ? usualLocation() : credentialLocation(location, context.at('location'));
    // Looked up by hash: takes the same time for all keys, and the keys themselves are not kept in memory.
    const byHash = new Map(
      keys.map(({ key, keyHash, ...rest }) => [keyHash?.slice('sha256:'.length) ?? hash(key ?? ''), rest]),
    );
    return {
      request(ctx) {
        const given = credential.read(ctx);
        ctx.observer?.hide(given);
        const known = given === undefined ? undefined : byHash.get(hash(given));
        if (known === undefined) {
          const missing = given === undefined;
          if (mode === 'strict' || (mode === 'optional' && !missing)) {
            const reason = missing ? 'no API Key found' : 'invalid credentials';
            ctx.observer?.policy({ kind: 'apiKey', action: 'deny', reason });
            throw new AppError('api_key_failed', {
              message: `api key authentication failure: ${reason}`,
              headers: ['www-authenticate', credential.scheme],
            });
          }
          ctx.observer?.policy({
            kind: 'apiKey',
            action: 'skip',
            reason: missing ? 'no key' : 'unknown key, ignored in this mode',
          });
          return undefined;
        }
        credential.remove(ctx);
        keyMetadata.set(ctx, { ...known.metadata });
        allowedModels.set(ctx, known.allowedModels);
        principal.set(ctx, `apiKey:${hash(given as string)}`);
        ctx.invalidateVariable('apiKey');
        ctx.observer?.policy({
          kind: 'apiKey',
          action: 'apply',
          reason: 'the key is valid',
          snapshot: known.metadata,
        });
        return undefined;
      },
    };
  },
});

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Metadata of the caller's key. */
const keyMetadata = new Slot<Readonly<Record<string, unknown>>>();

export const apiKeyVariable = defineVariable(
  'apiKey',
  { type: 'map', doc: "`metadata` of the caller's key by name." },
  (ctx) => toCel(keyMetadata.get(ctx) ?? null),
);
