import { describe, expect, test } from 'vitest';
import { isSensitiveName, redactTarget } from '../../src/core/credentials.ts';
import { byForm } from '../../src/core/redact.ts';
import { AT_ONCE } from '../kit/at-once.ts';

describe('names of headers and parameters', () => {
  test.each([
    'X-Vault-Token',
    'x-user-session',
    'Mcp-Session-Id',
    'x-amz-security-token',
    'Key',
    'auth_code',
  ])('%s is a credential', (name) => {
    expect(isSensitiveName(name)).toBe(true);
  });

  test.each(['accept', 'user-agent', 'x-request-id', 'status_code', 'keyword', 'idempotency-key', 'page'])(
    '%s is none',
    (name) => {
      expect(isSensitiveName(name)).toBe(false);
    },
  );
});

test.each([
  ['beginnings of tokens', '-eyJ'.repeat(250_000)],
  ['dots after them', 'eyJaaaaa.'.repeat(100_000)],
  ['parameters without a value', '?a='.repeat(300_000)],
  ['semicolons', `/x?${';a'.repeat(500_000)}=`],
  ['ampersands', `/x?${'&'.repeat(1_000_000)}`],
])('a megabyte of %s is read in linear time', (_what, text) => {
  const started = performance.now();
  byForm.text(text);
  byForm.places(text);
  redactTarget(text);
  expect(performance.now() - started).toBeLessThan(AT_ONCE);
});
