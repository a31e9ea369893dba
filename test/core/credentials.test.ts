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
  ['beginnings of tokens', '-eyJ'.repeat(250_000)],
  ['dots after them', 'eyJaaaaa.'.repeat(100_000)],
  ['parameters without a value', '?a='.repeat(300_000)],
  ['semicolons', `/x?${';a'.repeat(500_000)}=`],
  ['ampersands', `/x?${'&'.repeat(1_000_000)}`],
])('secret redaction reads a megabyte of %s in linear time', (_what, text) => {
  const started = performance.now();
  byForm.text(text);
  byForm.places(text);
  redactTarget(text);
  expect(performance.now() - started).toBeLessThan(AT_ONCE);
});
