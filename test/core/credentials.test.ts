import { describe, expect, test } from 'vitest';
import { isSensitiveName, redactTarget } from '../../src/core/credentials.ts';
import { byForm } from '../../src/core/redact.ts';
import { AT_ONCE } from '../kit/at-once.ts';

describe('sensitive names', () => {
  test.each([
    'X-Vault-Token',
    'x-user-session',
    'Mcp-Session-Id',
    'x-amz-security-token',
    'Key',
    'auth_code',
  ])('isSensitiveName(%s) is true', (name) => {
    expect(isSensitiveName(name)).toBe(true);
  });

  test.each(['accept', 'user-agent', 'x-request-id', 'status_code', 'keyword', 'idempotency-key', 'page'])(
    'isSensitiveName(%s) is false',
    (name) => {
      expect(isSensitiveName(name)).toBe(false);
    },
  );
});

test.each([
  ['/cb?code=abc&state=xyz&iss=a', '/cb?code=<redacted>&state=<redacted>&iss=a'],
  ['/cb?st%61te=xyz&error=access_denied', '/cb?st%61te=<redacted>&error=access_denied'],
  ['/cb?code=abc&code=def&state=', '/cb?code=<redacted>&code=<redacted>&state=<redacted>'],
  ['/shops?state=NY', '/shops?state=NY'],
])('state is a secret where a query is the answer of a sign-in: %s', (target, redacted) => {
  expect(redactTarget(target)).toBe(redacted);
});

describe('lines of programs', () => {
  test.each([
    'max_tokens=4096, temperature=1',
    'error: maxResultTokens: 5000 is too small',
    '{"maxTokens": 5000, "max_output_tokens": 100000}',
    'tokenLimit: 5k',
  ])('numbers of tokens stay: %s', (line) => {
    expect(byForm.line(line)).toBe(line);
  });

  test.each([
    ['token: 123456', 'token: <redacted>'],
    ['tokens=123456', 'tokens=<redacted>'],
    ['maxTokens=sk-abcdef', 'maxTokens=<redacted>'],
    ['"maxTokens": "hunter2hunter2"', '"maxTokens": <redacted>'],
    ['access_token=5000', 'access_token=<redacted>'],
    ['inputToken=123456', 'inputToken=<redacted>'],
    ['min_io_token: 123456', 'min_io_token: <redacted>'],
    ['admin_tokens: 123456', 'admin_tokens: <redacted>'],
    ['token_secret_limit=123456', 'token_secret_limit=<redacted>'],
    ['max_tokens=1234567890123', 'max_tokens=<redacted>'],
    ['max tokens token=123456', 'max tokens token=<redacted>'],
  ])('credentials do not: %s', (line, shown) => {
    expect(byForm.line(line)).toBe(shown);
  });
});

test.each([
  ['beginnings of tokens', '-eyJ'.repeat(250_000)],
  ['dots after them', 'eyJaaaaa.'.repeat(100_000)],
  ['parameters without a value', '?a='.repeat(300_000)],
  ['beginnings of private keys', '-----BEGIN PRIVATE KEY-----'.repeat(40_000)],
  ['a private key without an end', `-----BEGIN PRIVATE KEY-----${'a-'.repeat(500_000)}`],
  ['beginnings of keys', 'sk-'.repeat(350_000)],
  ['semicolons', `/x?${';a'.repeat(500_000)}=`],
  ['ampersands', `/x?${'&'.repeat(1_000_000)}`],
])('secret redaction reads a megabyte of %s in linear time', (_what, text) => {
  const started = performance.now();
  byForm.text(text);
  byForm.places(text);
  redactTarget(text);
  expect(performance.now() - started).toBeLessThan(AT_ONCE);
});
