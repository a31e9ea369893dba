// The tests of Redis; those that kill a replica hundreds of times say nothing about the server.
import { REDIS_SERVER } from '../../kit/redis.ts';
import '../../server/shared/config.test.ts';
import '../redis/sentinel.test.ts';
import '../redis/shared.test.ts';
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('the server is a Valkey', () => {
  expect(execFileSync(REDIS_SERVER ?? '', ['--version'], { encoding: 'utf8' })).toMatch(/^Valkey server v=/);
});
