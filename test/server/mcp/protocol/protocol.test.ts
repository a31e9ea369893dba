import { describe, expect, test } from 'vitest';
import {
  badMessage,
  errorMessage,
  errorText,
  notificationMessage,
  RpcError,
  readableText,
  requestMessage,
  rpcErrorIn,
} from '../../../../src/server/mcp/protocol/protocol.ts';

const NO_REASON = 'the server gave no reason';

describe('the JSON-RPC error of a server', () => {
  test.each<[body: string, error: object]>([
    ['{"error":{"code":-32000,"message":"m","data":[1]}}', { code: -32000, message: 'm', data: [1] }],
    ['{"error":{"code":0}}', { code: 0, message: NO_REASON, data: undefined }],
    ['{"error":{"code":1.0,"message":null}}', { code: 1, message: NO_REASON, data: undefined }],
  ])('in %s is read', (body, error) => {
    expect(rpcErrorIn(body)).toEqual(error);
  });

  test.each([
    '',
    '{',
    'null',
    '1',
    '"x"',
    '[]',
    '[{"error":{"code":1}}]',
    '{}',
    '{"error":null}',
    '{"error":"x"}',
    '{"error":[{"code":1}]}',
    '{"error":{}}',
    '{"error":{"code":null}}',
    '{"error":{"code":"1"}}',
    '{"error":{"code":1.5}}',
    '{"error":{"code":9007199254740993}}',
  ])('is not in %s', (body) => {
    expect(rpcErrorIn(body)).toBeUndefined();
  });

  test('has a message of any type', () => {
    expect(['m', ['m'], { a: 1 }, 0, false].map(readableText)).toEqual([
      'm',
      '["m"]',
      '{"a":1}',
      '0',
      'false',
    ]);
    expect([undefined, null, ''].map(readableText)).toEqual([NO_REASON, NO_REASON, NO_REASON]);
  });
});

describe('messages of the gateway', () => {
  test('have parameters and data if there are any', () => {
    expect(requestMessage('1', 'm')).toBe('{"jsonrpc":"2.0","id":1,"method":"m"}');
    expect(requestMessage('"1"', 'm', { a: 1 })).toBe(
      '{"jsonrpc":"2.0","id":"1","method":"m","params":{"a":1}}',
    );
    expect(notificationMessage('m')).toBe('{"jsonrpc":"2.0","method":"m"}');
    expect(notificationMessage('m', {})).toBe('{"jsonrpc":"2.0","method":"m","params":{}}');
    const error = (more: string) => `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"${more}}}`;
    expect([errorMessage('1', -1, 'm'), errorText('1', -1, 'm')]).toEqual([error(''), error('')]);
    const withData = error(',"data":null');
    expect([errorMessage('1', -1, 'm', null), errorText('1', -1, 'm', 'null')]).toEqual([withData, withData]);
    expect(badMessage(new RpcError(-1, 'm', null), '1')).toMatchObject({
      message: 'mcp: m',
      body: { type: 'application/json', text: withData },
    });
  });
});
