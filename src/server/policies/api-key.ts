import { z } from 'zod';
import { AppError, detailOf } from '../../core/errors.ts';
import { elementsOf, membersOf } from '../../core/foreign.ts';
import { choice, list } from '../../core/schema/mapping.ts';
import { type BudgetMeter, CallBudget, callBudget, type NamedClaim } from '../budgets/call-budget.ts';
import { missingDatabase } from '../budgets/missing-database.ts';
import { type KnownKey, spendingOf } from '../budgets/spending.ts';
import { hashOfKey, isUsable, type RefusedKey } from '../budgets/virtual-key.ts';
import { credentialLocation, locationSchema, usualLocation } from '../credentials/location.ts';
import { nameOfKey } from '../expressions/caller.ts';
import { toCel } from '../expressions/cel/values.ts';
import { defineVariable } from '../expressions/variable.ts';
import { Admitter, admitting } from '../kernel/admission.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { definePolicy, readsMemberOf } from '../kernel/policy.ts';
import type { KnownCaller } from '../kernel/request/policy-description.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { allowedModels, principal, refusedKey } from '../kernel/request/shared-slots.ts';
import { Slot } from '../kernel/slot.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';

const HASH = /^sha256:[0-9a-f]{64}$/;

const keySchema = z.lazy(() =>
  z
    .strictObject({
      key: textOrFile
        .optional()
        .meta({ secret: true })
        .describe(
          'The key itself, or `{ file: … }` with one key, or its hash as in `keyHash`, on each line. Empty lines and those that begin with `#` do not count.',
        ),
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
    }),
);

const virtualKeysSchema = z
  .strictObject({
    failureMode: choice(
      'What happens to calls of keys with budgets that cannot be counted, because the database fails or the price of the model is unknown: `failClosed` refuses them, `failOpen` lets them through.',
      ['failClosed', 'failOpen'],
      'failClosed',
    ),
  })
  .describe(
    'Accepts also the keys of `agctl keys create`, which are kept in `config.database`. Expressions read their metadata as `apiKey.<name>`, and `apiKey.name`.',
  );

const schema = z.lazy(() =>
  z
    .strictObject({
      keys: list('Accepted keys.', keySchema),
      virtualKeys: virtualKeysSchema.optional(),
      mode: choice(
        '`strict`: a valid key is required. `optional`: no key or a valid one. `permissive`: requests are never rejected.',
        ['strict', 'optional', 'permissive'],
        'optional',
      ),
      location: locationSchema
        .optional()
        .describe(
          'Location of the key in the request. Default: `Authorization: Bearer`; on routes with models also `x-api-key`, `x-goog-api-key` and `api-key`, which official clients send.',
        ),
    })
    .superRefine(({ keys, virtualKeys }, context) => {
      if (keys.length > 0 || virtualKeys !== undefined) return;
      context.addIssue({
        code: 'custom',
        message: 'expected `keys` with at least one key, or `virtualKeys: {}`',
        params: { code: 'AGW0105' },
      });
    })
    .describe('Authenticates callers by a shared key.'),
);

/** Authenticates callers by shared keys. The key is removed from the request, so that backends do not receive it. */
export const apiKey = definePolicy({
  key: 'apiKey',
  places: ['gateway', 'route'],
  restrictsClients: true,
  requestExpressions: ['location.expression'],
  schema,
  trace: { kind: 'api_key', stage: 'api key' },
  // Upstream's spelling.
  dump: ({ keys, virtualKeys, ...rest }) => ({
    aPIKey: { ...rest, keys, ...(virtualKeys && { virtualKeys }) },
  }),
  sets: {
    isReadBy: (expression) => readsMemberOf('apiKey', expression),
    missingFrom: (route) => ({
      code: 'AGW0309',
      message: `route \`${route}\` reads \`apiKey\`, but none of its policies sets it`,
      help: 'add the policy `apiKey`; until then `apiKey` is null',
    }),
  },
  compile({ keys, mode, location, virtualKeys }, context) {
    if (mode !== 'strict') {
      context.report({
        code: 'AGW0304',
        atKey: true,
        message: `\`apiKey\` lets requests without ${mode === 'optional' ? 'a key' : 'a valid key'} through`,
        help: 'set `mode: strict` to require one',
      });
    }
    const credential =
      location === undefined ? usualLocation() : credentialLocation(location, context.at('location'));
    // Looked up by hash: takes the same time for all keys, and the keys themselves are not kept in memory.
    const byHash = new Map(
      keys.flatMap(({ key, keyHash, ...rest }, index) =>
        hashesOf({ key, keyHash }, context.at('keys', index, 'key')).map((hashed) => [hashed, rest] as const),
      ),
    );
    const virtual = virtualKeys && compileVirtualKeys(virtualKeys, context.at('virtualKeys'));
    const configured = (hashed: string): AcceptedKey | undefined => {
      const found = byHash.get(hashed);
      return found && { metadata: { ...found.metadata }, allowedModels: found.allowedModels };
    };
    const admitter = new Admitter(
      context.settings,
      (hashed) => {
        if (hashed === NO_KEY) return mode === 'strict' ? undefined : {};
        return configured(hashed) ?? virtual?.known(hashed);
      },
      async (hashed) => {
        const key = await virtual?.refused(hashed);
        return key ? `its virtual key ${key.name} (${key.id}) is ${key.why}` : undefined;
      },
    );
    /** `given`: undefined if no key was. `hashed`: its hash. */
    const decide = (
      ctx: RequestContext,
      given: string | undefined,
      hashed: string,
      known: AcceptedKey | undefined,
    ): undefined | Promise<undefined> => {
      if (given === undefined || known === undefined) {
        const missing = given === undefined;
        if (mode === 'strict' || (mode === 'optional' && !missing)) {
          const refuse = (key: RefusedKey | null): never => {
            throw refusal(ctx, credential.scheme, missing ? 'no API Key found' : 'invalid credentials', key);
          };
          const refused = missing ? null : (virtual?.refused(hashed) ?? null);
          return refused instanceof Promise ? refused.then(refuse, () => refuse(null)) : refuse(refused);
        }
        ctx.observer?.policy({
          kind: 'apiKey',
          action: 'skip',
          reason: missing ? 'no key' : 'unknown key, ignored in this mode',
        });
        admitter.admit(ctx, NO_KEY, {});
        return undefined;
      }
      credential.remove(ctx, given);
      keyMetadata.set(ctx, known.metadata);
      allowedModels.set(ctx, known.allowedModels);
      principal.set(ctx, `apiKey:${hashed}`);
      admitter.admit(ctx, hashed, known);
      ctx.invalidateVariable('apiKey');
      ctx.observer?.policy({
        kind: 'apiKey',
        action: 'apply',
        reason: 'the key is valid',
        snapshot: known.metadata,
      });
      return undefined;
    };
    return {
      identifies: {
        variable: 'apiKey',
        takes: 'a key',
        isRequired: mode === 'strict',
        async callers() {
          const configured = [...byHash].map(([hashed, { metadata }]) => ({
            name: nameOfKey(metadata['name'], hashed),
            value: metadata,
          }));
          return virtual === undefined ? configured : [...configured, ...(await virtual.callers())];
        },
      },
      request(ctx) {
        const given = credential.read(ctx);
        ctx.observer?.hide(given);
        if (given === undefined) return decide(ctx, undefined, NO_KEY, undefined);
        const hashed = hashOfKey(given);
        const found = configured(hashed) ?? virtual?.find(ctx, hashed);
        return found instanceof Promise
          ? found.then((key) => decide(ctx, given, hashed, key))
          : decide(ctx, given, hashed, found);
      },
      ...admitting(admitter),
    };
  },
});

/** Only the log gets to know a key that was valid once: a client that has found it learns nothing of it. */
function refusal(ctx: RequestContext, scheme: string, told: string, key: RefusedKey | null): AppError {
  const reason = key === null ? told : `the key is ${key.why}`;
  if (key !== null) refusedKey.set(ctx, key.name);
  ctx.observer?.policy({ kind: 'apiKey', action: 'deny', reason });
  return new AppError('api_key_failed', {
    message: `api key authentication failure: ${told}`,
    logged: `api key authentication failure: ${reason}`,
    ...(key !== null && { detail: `virtual key ${key.id}` }),
    headers: ['www-authenticate', scheme],
  });
}

/** The hashes of the keys of one entry. Reports a file without keys. */
function hashesOf(
  { key, keyHash }: Pick<z.output<typeof keySchema>, 'key' | 'keyHash'>,
  context: CompileContext,
): string[] {
  if (keyHash !== undefined) return [keyHash.slice('sha256:'.length)];
  if (key === undefined) return [];
  if (typeof key === 'string') return [hashOfKey(key)];
  const text = readText(key, context);
  const found = (text ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (text !== undefined && found.length === 0)
    context.at('file').report({
      code: 'AGW0104',
      message: 'the file has no keys',
      help: 'write one key on each line',
    });
  for (const line of found) context.settings.secretNames.values.add(line);
  return found.map((line) => (HASH.test(line) ? line.slice('sha256:'.length) : hashOfKey(line)));
}

interface AcceptedKey {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly allowedModels?: readonly string[] | undefined;
}

/** Stands for no key, of callers that the mode lets in. */
const NO_KEY = '';

type Found = AcceptedKey | undefined | Promise<AcceptedKey | undefined>;

interface VirtualKeys {
  /** Finds a key by its hash, and adds its budgets to the request. Rejects with an `AppError` (503) if the keys are not known. */
  find(ctx: RequestContext, hashed: string): Found;
  /** Which known key is not found, and why. */
  refused(hashed: string): RefusedKey | null | Promise<RefusedKey | null>;
  /** What is known of a key. Rejects if the keys are not known. */
  known(hashed: string): Found;
  /** Those that may be used. Not in a worker. Rejects as `find` does. */
  callers(): Promise<readonly KnownCaller[]>;
}

/** Whether a policy, or one of its conditional entries, accepts the virtual keys of the gateway. */
export function acceptsVirtualKeys({
  key,
  config,
}: {
  readonly key: string;
  readonly config: unknown;
}): boolean {
  const { conditional } = membersOf(config);
  return (
    key === apiKey.key &&
    [config, ...elementsOf(conditional)].some((entry) => membersOf(entry)['virtualKeys'] !== undefined)
  );
}

function compileVirtualKeys(
  { failureMode }: z.output<typeof virtualKeysSchema>,
  context: CompileContext,
): VirtualKeys | undefined {
  const spending = spendingOf.get(context.settings);
  if (spending === undefined) {
    context.report(missingDatabase(context.settings, '`virtualKeys`', 'the keys'));
    return undefined;
  }
  const isOpen = failureMode === 'failOpen';
  const count = context.settings.counter('budgetCalls');
  const meter: BudgetMeter = (budget, outcome) => count([budget, outcome]);
  /** Of keys without workers, which get a new object for each request. */
  const named = new WeakMap<KnownKey, readonly NamedClaim[]>();
  const claimsOf = (key: KnownKey): readonly NamedClaim[] => {
    const known = named.get(key);
    if (known !== undefined) return known;
    const { name, claims } = key;
    const created = claims.map((claim) => ({ ...claim, budget: 'virtual key', key: name, isOpen }));
    named.set(key, created);
    return created;
  };
  const accepted = (key: KnownKey | null): AcceptedKey | undefined =>
    key === null ? undefined : { metadata: metadataOf(key), allowedModels: key.allowedModels };
  const accept = (ctx: RequestContext, key: KnownKey | null): AcceptedKey | undefined => {
    if (key !== null && key.claims.length > 0)
      callBudget.ensure(ctx, () => new CallBudget(spending, meter)).add(claimsOf(key));
    return accepted(key);
  };
  return {
    known(hashed) {
      const found = spending.call.find(hashed);
      return found instanceof Promise ? found.then(accepted) : accepted(found);
    },
    find(ctx, hashed) {
      const found = spending.call.find(hashed);
      return found instanceof Promise
        ? found.then((key) => accept(ctx, key), unavailable)
        : accept(ctx, found);
    },
    refused: (hashed) => spending.call.refused(hashed),
    async callers() {
      const now = Date.now();
      const all = await spending.keys.list().catch(unavailable);
      return all
        .filter((key) => isUsable(key, now))
        .map((key) => ({ name: key.name, value: metadataOf(key) }));
    },
  };
}

/** What expressions read of a virtual key. */
const metadataOf = ({
  metadata,
  id,
  name,
}: Pick<KnownKey, 'metadata' | 'id' | 'name'>): KnownKey['metadata'] => ({
  ...metadata,
  id,
  name,
});

function unavailable(error: unknown): never {
  throw new AppError('database_unavailable', {
    message: 'virtual keys cannot be checked: the database of the gateway is not available',
    detail: detailOf(error),
  });
}

/** `metadata` of the caller's key. */
export const keyMetadata = new Slot<Readonly<Record<string, unknown>>>();

export const apiKeyVariable = defineVariable(
  'apiKey',
  { type: 'map', doc: "`metadata` of the caller's key by name." },
  (ctx) => toCel(keyMetadata.get(ctx) ?? null),
);
