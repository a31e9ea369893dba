import { describe, expect, test } from 'vitest';
import {
  capabilitiesIn,
  descriptionIn,
  initializeResultFor,
  initializeResultOf,
} from '../../../../src/server/mcp/protocol/initialize-result.ts';
import { parseMessage, TARGET_BOUNDS } from '../../../../src/server/mcp/protocol/message.ts';

const of = (result: unknown) =>
  initializeResultOf(parseMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, result }), TARGET_BOUNDS));

describe('the result of initialize', () => {
  test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'has the revision %s',
    (protocolVersion) => {
      expect(of({ protocolVersion, capabilities: { tools: {} } })).toEqual({
        protocolVersion,
        capabilities: { tools: {} },
      });
    },
  );

  test.each([
    ['2026-07-28', 'it chose the protocol revision "2026-07-28" in initialize'],
    ['2099-01-01', 'it chose the protocol revision "2099-01-01" in initialize'],
    ['', 'it chose the protocol revision "" in initialize'],
    [20251125, 'it chose the protocol revision 20251125 in initialize'],
    [['2025-11-25'], 'it chose the protocol revision ["2025-11-25"] in initialize'],
    ['x'.repeat(500), `it chose the protocol revision "${'x'.repeat(63)} in initialize`],
    [null, 'its initialize result has no protocolVersion'],
    [undefined, 'its initialize result has no protocolVersion'],
  ])('with the revision %j ends the connection', (protocolVersion, problem) => {
    expect(() => of({ protocolVersion })).toThrow(
      `${problem}: expected one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25`,
    );
  });

  test.each([[{ name: 'a', version: '1' }], [{}]])('has the server info %j', (serverInfo) => {
    expect(descriptionIn({ serverInfo, instructions: 'i' })).toMatchObject({ serverInfo, instructions: 'i' });
  });

  test.each([['a'], [7], [null], [[]], [true]])(
    'has no server info and no instructions that are %j',
    (other) => {
      const instructions = typeof other === 'string' ? [other] : other;
      expect(
        Object.keys(descriptionIn({ serverInfo: other, instructions, capabilities: { tools: {} } })),
      ).toEqual(['capabilities']);
    },
  );

  test.each([[undefined], [null], [7], ['tools'], [['tools']], [{}], [{ logging: {} }]])(
    'with the capabilities %j may have tools, prompts and resources',
    (capabilities) => {
      const own =
        typeof capabilities === 'object' && capabilities !== null && 'logging' in capabilities
          ? capabilities
          : {};
      expect(capabilitiesIn(capabilities)).toEqual({ ...own, tools: {}, prompts: {}, resources: {} });
    },
  );

  test.each([[{ tools: null }], [{ prompts: {} }], [{ resources: { subscribe: true } }]])(
    'with the capabilities %j has no others',
    (capabilities) => {
      expect(capabilitiesIn(capabilities)).toEqual(capabilities);
    },
  );
});

describe('the result of initialize for a client, of a server that has server/discover', () => {
  const written = (result: unknown, requested: unknown = '2025-11-25') =>
    JSON.parse(
      initializeResultFor(requested, {
        discovered: parseMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, result }), TARGET_BOUNDS),
        targetName: 'files',
      }),
    );
  const withInfo = (serverInfo: unknown) => ({
    capabilities: { tools: {} },
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
  });

  test('has what the server says of itself', () => {
    const info = { name: 'a', version: '1' };
    expect(written({ ...withInfo(info), instructions: 'read this' })).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: info,
      instructions: 'read this',
    });
  });

  test.each([[undefined], [null], ['a'], [[]]])('has the name of the target for server info %j', (info) => {
    const result = written(withInfo(info));
    expect(result.serverInfo).toEqual({ name: 'files', version: '' });
    expect(result).not.toHaveProperty('instructions');
  });

  test.each([
    ['2025-03-26', '2025-03-26'],
    ['2026-07-28', '2025-11-25'],
    [7, '2025-11-25'],
    [undefined, '2025-11-25'],
  ])('for the revision %j has %s', (requested, chosen) => {
    expect(written({}, requested).protocolVersion).toBe(chosen);
  });
});
