import { describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { createLog } from '../../../../src/core/log.ts';
import { KeySet, KeySetUnavailableError } from '../../../../src/server/policies/jwt/key-set.ts';
import { TokenValidator } from '../../../../src/server/policies/jwt/token-validator.ts';
import type { Document } from '../../../../src/server/transport/upstream/document-client.ts';
import { type SigningKey, seconds, signingKey, token } from '../../../kit/tokens.ts';

const SECOND = 1000;
const LIFETIME = 900 * SECOND;

/** A key set whose clock and document the test writes. The bounds of remembered tokens are a hundredth of the product's. */
function scripted(...published: SigningKey[]) {
  const state = {
    now: 5_000_000,
    reads: 0,
    published: published.map(({ jwk }) => jwk) as object[],
    failure: undefined as string | undefined,
    lifetime: LIFETIME,
    log: [] as string[],
    /** While set, reads stay pending until it is called. */
    release: undefined as (() => void) | undefined,
  };
  const read = async (): Promise<Document> => {
    state.reads += 1;
    if (state.release !== undefined)
      await new Promise<void>((resolve) => {
        state.release = resolve;
      });
    if (state.failure !== undefined) throw new Error(state.failure);
    return { value: { keys: state.published }, lifetime: state.lifetime };
  };
  const sink = {
    write: (line: string) => void state.log.push(line),
    dropped: 0,
    flush: async () => undefined,
  };
  const keys = new KeySet(read, createLog(sink, 'debug', 'text'), () => state.now);
  const rules = { issuer: 'i', audiences: ['a'], required: ['exp'], accessTokenType: undefined };
  const limits = {
    validTokens: LIMITS.validTokens / 100,
    validTokenCharacters: LIMITS.validTokenCharacters / 100,
  };
  const validator = new TokenValidator(keys, rules, limits);
  return Object.assign(state, {
    keys,
    validator,
    /** `accepted` for a new token of this key, or the reason of its rejection. */
    async verdict(key: SigningKey, text = fresh(key)): Promise<string> {
      try {
        await validator.validate(text);
        return 'accepted';
      } catch (error) {
        return (error as Error).message;
      }
    },
  });
}

let serial = 0;
function fresh(key: SigningKey): string {
  serial += 1;
  return token(key, { iss: 'i', aud: 'a', exp: seconds(300), jti: serial });
}

const one = signingKey('one');
const two = signingKey('two');
const three = signingKey('three');
const UNKNOWN = 'the token is signed with an unknown key';

describe('KeySet reads', () => {
  test('KeySet is read on the first token, and once for concurrent tokens', async () => {
    const set = scripted(one);
    set.keys.keepFresh();
    void set.keys.reread();
    expect([set.keys.get('one'), set.keys.size, set.reads]).toEqual([undefined, 0, 0]);
    const verdicts = await Promise.all(Array.from({ length: 1_000 }, () => set.verdict(one)));
    expect(new Set(verdicts)).toEqual(new Set(['accepted']));
    expect([set.keys.size, set.reads]).toEqual([1, 1]);
    expect(set.log).toEqual([
      expect.stringMatching(/signing keys were read\tkeys=1 changed=false valid\.s=900\n?$/),
    ]);
  });

  test('KeySet is read once for 1,000 tokens with different unknown keys', async () => {
    const set = scripted(one);
    await set.verdict(one);
    const strangers = Array.from({ length: 1_000 }, (_, index) => ({ ...two, kid: `stranger-${index}` }));
    const verdicts = await Promise.all(strangers.map((stranger) => set.verdict(stranger)));
    expect(new Set(verdicts)).toEqual(new Set([UNKNOWN]));
    expect(set.reads).toBe(2);
  });

  test('KeySet is read once when all first tokens have unknown keys', async () => {
    const set = scripted(one);
    await Promise.all(Array.from({ length: 1_000 }, () => set.verdict(two)));
    expect(set.reads).toBe(1);
  });

  test('KeySet is read again for unknown keys at most every 30 seconds', async () => {
    const set = scripted(one);
    await set.verdict(one);
    await set.verdict(two);
    expect(set.reads).toBe(2);
    set.now += 30 * SECOND - 1;
    expect(await set.verdict(two)).toBe(UNKNOWN);
    expect(set.reads).toBe(2);
    set.published = [two.jwk];
    set.now += 1;
    expect(await set.verdict(two)).toBe('accepted');
    expect(set.reads).toBe(3);
    expect(set.log.filter((line) => line.includes('names an unknown key'))).toHaveLength(2);
    expect(set.log.at(-1)).toMatch(/\tdebug\tauth\tsigning keys were read\tkeys=1 changed=true/);
  });

  test('KeySet is read immediately for a key rotated right after the first read', async () => {
    const set = scripted(one);
    await set.verdict(one);
    set.now += SECOND;
    set.published = [one.jwk, two.jwk];
    expect(await set.verdict(two)).toBe('accepted');
  });

  test('KeySet is not read again for tokens that fail another check', async () => {
    const set = scripted(one);
    await set.verdict(one);
    const expired = token(two, { iss: 'i', aud: 'a', exp: seconds(-100) });
    expect(await set.verdict(two, expired)).toBe('the token has expired');
    expect(await set.verdict(two, token(two, { iss: 'other', aud: 'a', exp: seconds(9) }))).toMatch(/issuer/);
    expect(set.reads).toBe(1);
  });
});

describe('KeySet expiry', () => {
  test('an expired KeySet is still used while one refresh runs', async () => {
    const set = scripted(one);
    await set.verdict(one);
    set.now += LIFETIME;
    set.release = () => undefined;
    expect(await set.verdict(one)).toBe('accepted');
    expect(await set.verdict(one)).toBe('accepted');
    expect(set.reads).toBe(2);
  });

  test('an expired KeySet is refreshed even when every token is cached, so that key removal is noticed', async () => {
    const set = scripted(one);
    const text = fresh(one);
    expect(await set.verdict(one, text)).toBe('accepted');
    set.published = [two.jwk];
    expect(await set.verdict(one, text)).toBe('accepted');
    set.now += LIFETIME;
    await set.verdict(one, text);
    expect(set.reads).toBe(2);
    await new Promise(setImmediate);
    expect(await set.verdict(one, text)).toBe(UNKNOWN);
  });

  test('an expired KeySet stays in use while the provider fails, which is retried every 30 seconds', async () => {
    const set = scripted(one);
    await set.verdict(one);
    set.failure = 'down';
    set.now += LIFETIME;
    for (let minute = 0; minute < 4; minute += 1) {
      expect(await set.verdict(one)).toBe('accepted');
      await new Promise(setImmediate);
      set.now += 15 * SECOND;
    }
    expect(set.reads).toBe(3);
    expect(set.log.filter((line) => line.includes('signing keys could not be read'))).toHaveLength(2);
    expect(set.log.at(-1)).toMatch(/problem="down" kept=1/);
  });

  test('an unchanged KeySet keeps the cached tokens', async () => {
    const set = scripted(one, two);
    await set.verdict(one);
    set.published.reverse();
    set.now += LIFETIME;
    await set.verdict(one);
    await new Promise(setImmediate);
    expect(set.reads).toBe(2);
    expect(set.validator.remembered).toBe(2);
  });

  test('a KeySet that restricts a key to another algorithm revalidates its cached tokens', async () => {
    const key = signingKey('rsa', 'RS256');
    const set = scripted();
    set.published = [{ ...key.jwk, alg: undefined }];
    const text = fresh(key);
    expect(await set.verdict(key, text)).toBe('accepted');
    set.published = [{ ...key.jwk, alg: 'PS256' }];
    set.now += LIFETIME;
    await set.verdict(key, text);
    await new Promise(setImmediate);
    expect(await set.verdict(key, text)).toBe('the signature of the token is not valid');
  });
});

describe('key rotation', () => {
  test('key rotation accepts new keys immediately and old keys until they are removed', async () => {
    const set = scripted(one);
    const old = fresh(one);
    expect(await set.verdict(one, old)).toBe('accepted');
    set.published = [one.jwk, two.jwk];
    expect(await set.verdict(two)).toBe('accepted');
    expect(await set.verdict(one, old)).toBe('accepted');
    set.published = [two.jwk, three.jwk];
    set.now += 30 * SECOND;
    expect(await set.verdict(three)).toBe('accepted');
    expect(await set.verdict(one, old)).toBe(UNKNOWN);
    expect(await set.verdict(two)).toBe('accepted');
  });

  test('key rotation under the same id invalidates tokens of the old key', async () => {
    const set = scripted(one);
    const old = fresh(one);
    expect(await set.verdict(one, old)).toBe('accepted');
    set.published = [{ ...two.jwk, kid: 'one' }];
    set.now += LIFETIME;
    await set.verdict(one, old);
    await new Promise(setImmediate);
    expect(await set.verdict(one, old)).toBe('the signature of the token is not valid');
  });
});

test('a token whose key is removed during signature verification is not cached', async () => {
  const set = scripted(one);
  await set.verdict(one);
  const text = fresh(one);
  // The key is looked up synchronously; the keys change before the signature is verified.
  const verdict = set.verdict(one, text);
  set.published = [two.jwk];
  void set.keys.reread();
  expect(await verdict).toBe('accepted');
  expect(set.reads).toBe(2);
  expect(set.validator.remembered).toBe(0);
  expect(await set.verdict(one, text)).toBe(UNKNOWN);
});

describe('KeySet before the first successful read', () => {
  test('a token is undecided without any keys, and the provider is retried after 5 seconds', async () => {
    const set = scripted(one);
    set.failure = 'connection refused';
    await expect(set.validator.validate(fresh(one))).rejects.toThrow(
      new KeySetUnavailableError('connection refused'),
    );
    set.now += 5 * SECOND - 1;
    await expect(set.validator.validate(fresh(one))).rejects.toBeInstanceOf(KeySetUnavailableError);
    expect(set.reads).toBe(1);
    set.failure = undefined;
    set.now += 1;
    expect(await set.verdict(one)).toBe('accepted');
  });

  test('1,000 tokens share one failing KeySet read', async () => {
    const set = scripted(one);
    set.failure = 'down';
    const verdicts = await Promise.all(Array.from({ length: 1_000 }, () => set.verdict(one)));
    expect(new Set(verdicts)).toEqual(new Set(['down']));
    expect(set.reads).toBe(1);
    expect(set.log).toHaveLength(1);
  });
});

test('a KeySet that failed is read for the next token when its source has changed', async () => {
  const set = scripted(one);
  set.failure = 'down';
  expect(await set.verdict(one)).toBe('down');
  set.failure = undefined;
  void set.keys.reread();
  expect(set.reads).toBe(1);
  expect(await set.verdict(one)).toBe('accepted');
});

test('a KeySet in the configuration has no time limit', async () => {
  const set = scripted(one);
  set.lifetime = Number.POSITIVE_INFINITY;
  await set.verdict(one);
  set.now += 1e12;
  expect(await set.verdict(one)).toBe('accepted');
  expect(set.reads).toBe(1);
  expect(set.log).toEqual([expect.stringMatching(/keys=1 changed=false\n?$/)]);
});

test('a key that is ignored is named in the log by the beginning of its id, or by the type of it', async () => {
  const set = scripted(one);
  set.published = [one.jwk, { ...two.jwk, kid: 'k'.repeat(200), alg: 'none' }, { ...two.jwk, kid: 7 }];
  expect(await set.verdict(one)).toBe('accepted');
  const ignored = set.log.filter((line) => line.includes('a signing key was ignored'));
  expect(ignored.map((line) => /\tkid="?(\w+)/.exec(line)?.[1])).toEqual(['k'.repeat(100), 'number']);
});

describe('cached tokens', () => {
  test('the token cache holds fewer tokens when they are large', async () => {
    const set = scripted(one);
    const large = { iss: 'i', aud: 'a', exp: seconds(300), groups: 'g'.repeat(8_000) };
    const tokens = Array.from({ length: 20 }, (_, index) => token(one, { ...large, jti: 10 + index }));
    for (const text of tokens) await set.validator.validate(text);
    const characters = (tokens.at(-1) as string).split('.')[1]?.length ?? 0;
    expect(set.validator.remembered).toBe(Math.floor((16 * 1024 * 1024) / 100 / characters));
    // The newest are cached and need no key; the oldest are not.
    set.keys.get = () => undefined;
    expect(set.validator.validate(tokens.at(-1) as string)).toMatchObject({ jti: 29 });
    await expect(set.validator.validate(tokens[0] as string)).rejects.toThrow(UNKNOWN);
  });

  test('the token cache is bounded in number and keeps the most recently used tokens', async () => {
    const set = scripted(one);
    const first = fresh(one);
    const second = fresh(one);
    for (const text of [first, second]) await set.verdict(one, text);
    for (let count = 2; count < 100; count += 1) await set.verdict(one);
    await set.verdict(one, first);
    expect(set.validator.remembered).toBe(100);
    await set.verdict(one);
    expect(set.validator.remembered).toBe(100);
    // Only a token that is not cached needs a key.
    const get = vi.spyOn(set.keys, 'get');
    await set.verdict(one, first);
    expect(get).not.toHaveBeenCalled();
    await set.verdict(one, second);
    expect(get).toHaveBeenCalledOnce();
  });

  test('cached tokens expire like any other', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      const set = scripted(one);
      const start = Date.now();
      const text = token(one, { iss: 'i', aud: 'a', nbf: seconds(), exp: seconds(300) });
      const at = (offset: number): Promise<string> => {
        vi.setSystemTime(start + offset * SECOND);
        return set.verdict(one, text);
      };
      expect(await at(0)).toBe('accepted');
      expect(await at(359)).toBe('accepted');
      expect(await at(361)).toBe('the token has expired');
      expect(await at(-59)).toBe('accepted');
      expect(await at(-62)).toBe('the token is not valid yet');
    } finally {
      vi.useRealTimers();
    }
  });
});

test('a token over the length limit is rejected before it is parsed', async () => {
  const set = scripted(one);
  const text = token(one, { iss: 'i', aud: 'a', exp: seconds(300), pad: 'x'.repeat(16_384) });
  expect(await set.verdict(one, text)).toBe('the token is longer than 16384 characters');
  expect(set.reads).toBe(0);
});
