import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../kit/mcp.ts';

// The bound is ten seconds; what happens then is the same after one and a half, in which the other target is up.
const limits = LIMITS as { slowTarget: number };
const { slowTarget } = limits;
beforeEach(() => {
  limits.slowTarget = 1_500;
});
afterEach(() => {
  limits.slowTarget = slowTarget;
});

describe('a target that does not answer initialize', () => {
  test('does not hold up the others, and lists say that it is missing', async () => {
    await using gate = await gateway(mcpConfig([chaos('dumb', '--silent'), chaos('well')]));
    const session = await openSession(`${gate.url}/mcp`);
    expect(
      gate.log.some((line) => line.includes('target is slow to begin') && line.includes('target="dumb"')),
    ).toBe(true);
    const { result } = await session.request('tools/list');
    expect(result.tools.every(({ name }: { name: string }) => name.startsWith('well_'))).toBe(true);
    expect(result.tools).not.toEqual([]);
    expect(result._meta['agctl/unavailableTargets']).toEqual([
      { name: 'dumb', error: expect.stringContaining('no answer within 1.5 s') },
    ]);
    const { result: called } = await session.request('tools/call', {
      name: 'well_echo',
      arguments: { message: 'hi' },
    });
    expect(called.content[0].text).toBe('hi');
  });

  test('is waited for when failure is to be seen', async () => {
    await using gate = await gateway(
      mcpConfig([chaos('dumb', '--silent'), chaos('well')], { backend: { failureMode: 'failClosed' } }),
    );
    const leave = new AbortController();
    const opening = post(`${gate.url}/mcp`, INITIALIZE, {}, { signal: leave.signal }).catch(
      () => 'still waiting',
    );
    setTimeout(() => leave.abort(), limits.slowTarget * 2);
    expect(await opening).toBe('still waiting');
  });
});
