import { describe, expect, test } from 'vitest';
import {
  answeredRequest,
  canonicalId,
  idOfInvalid,
  idOfInvalidRequest,
  idOfRequest,
  isSameId,
  numberOfId,
  parseMessage,
  requestNumber,
  TARGET_BOUNDS,
  withId,
} from '../../../../src/server/mcp/protocol/message.ts';
import { RpcError } from '../../../../src/server/mcp/protocol/protocol.ts';

// Every shape check of the reader of JSON-RPC, which thousands of messages over the wire would take minutes to reach.

/** What the reader makes of a text: its kind, id and members, or the code and the message of the error. */
function read(text: string, isFromTarget = false): string {
  try {
    const { kind, id, method, params, result, error } = isFromTarget
      ? parseMessage(text, TARGET_BOUNDS)
      : parseMessage(text);
    const parts = [kind, id, method, params, result, error].filter(
      (part) => part !== undefined && part !== '',
    );
    return parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ');
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

const fromTarget = (members: string): string => read(`{"jsonrpc":"2.0",${members}}`, true);
const fromClient = (members: string): string => read(`{"jsonrpc":"2.0",${members}}`);

describe('texts that are no message', () => {
  test.each([
    ['', '-32700 the body is not valid JSON'],
    ['{', '-32700 the body is not valid JSON'],
    ['{"jsonrpc":"2.0","id":1', '-32700 the body is not valid JSON'],
    ['[]', '-32600 batches are not supported: send one message per request'],
    ['[{"jsonrpc":"2.0"}]', '-32600 batches are not supported: send one message per request'],
    ['null', '-32600 the body is not a JSON-RPC message'],
    ['"text"', '-32600 the body is not a JSON-RPC message'],
    ['1', '-32600 the body is not a JSON-RPC message'],
    ['true', '-32600 the body is not a JSON-RPC message'],
    ['{}', '-32600 expected "jsonrpc": "2.0"'],
    ['{"jsonrpc":2.0,"id":1,"method":"ping"}', '-32600 expected "jsonrpc": "2.0"'],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', '-32600 expected "jsonrpc": "2.0"'],
    ['{"jsonrpc":null,"id":1,"method":"ping"}', '-32600 expected "jsonrpc": "2.0"'],
  ])('%s is refused, from a client and from a server', (text, problem) => {
    expect(read(text)).toBe(problem);
    expect(read(text, true)).toBe(problem);
  });

  test('one that nests too deeply or has too many keys for a client is refused', () => {
    const deep = (levels: number) =>
      `"id":1,"method":"m","params":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    expect(fromClient(deep(20))).toContain('request 1 m');
    expect(fromClient(deep(5_000))).toMatch(
      /^-32600 the message nests deeper than \d+ or has over \d+ keys$/,
    );
    expect(fromTarget(deep(5_000))).toMatch(/^-32600 the message nests deeper than/);
    const wide = `"id":1,"method":"m","params":{${Array.from({ length: 60_000 }, (_, at) => `"k${at}":0`).join()}}`;
    expect(fromClient(wide)).toMatch(/^-32600 the message nests deeper than/);
    expect(fromTarget(wide)).toContain('request 1 m');
  });
});

const NEITHER =
  'response 1 {} {"code":-32603,"message":"the response has neither a result nor an error with a message"}';

describe('requests and notifications', () => {
  test.each([
    ['"id":1,"method":"ping"', 'request 1 ping {}'],
    ['"id":"a","method":"ping"', 'request "a" ping {}'],
    ['"id":-1,"method":"ping"', 'request -1 ping {}'],
    ['"id":1.0,"method":"ping"', 'request 1.0 ping {}'],
    ['"method":"ping"', 'notification ping {}'],
    ['"method":"ping","params":{"a":[1]}', 'notification ping {"a":[1]}'],
    ['"id":1.5,"method":"ping"', '-32600 expected "id" to be a string or a whole number'],
    ['"id":true,"method":"ping"', '-32600 expected "id" to be a string or a whole number'],
    ['"id":[],"method":"ping"', '-32600 expected "id" to be a string or a whole number'],
    ['"id":{},"method":"ping"', '-32600 expected "id" to be a string or a whole number'],
    ['"id":1e999,"method":"ping"', '-32600 expected "id" to be a string or a whole number'],
    ['"id":1,"method":7', '-32600 expected "method" to be a string'],
    ['"id":1,"method":["ping"]', '-32600 expected "method" to be a string'],
    ['"id":1,"method":{"a":1}', '-32600 expected "method" to be a string'],
    ['"id":1,"method":"ping","params":[]', '-32600 expected "params" to be an object'],
    ['"id":1,"method":"ping","params":"a"', '-32600 expected "params" to be an object'],
    ['"id":1,"method":"ping","params":7', '-32600 expected "params" to be an object'],
    ['"id":1,"method":"ping","params":false', '-32600 expected "params" to be an object'],
  ])('%s is read in the same way from both sides', (members, expected) => {
    expect(fromClient(members)).toBe(expected);
    expect(fromTarget(members)).toBe(expected);
  });

  test.each([
    [
      '"id":null,"method":"ping"',
      '-32600 expected "id" to be a string or a whole number',
      'notification ping {}',
    ],
    ['"id":1,"method":"ping","params":null', '-32600 expected "params" to be an object', 'request 1 ping {}'],
    ['"id":1,"method":"ping","result":null', 'request 1 ping {}', 'request 1 ping {}'],
    ['"id":1,"method":"ping","error":null', 'request 1 ping {}', 'request 1 ping {}'],
    // docker/mcp-gateway#505: only a response has no method.
    ['"id":1,"method":null', '-32600 expected "method" to be a string', NEITHER],
    ['"id":1', '-32600 expected "method" to be a string', NEITHER],
    ['"x":1', '-32600 expected "method" to be a string', '-32600 expected "method" to be a string'],
  ])('%s has members that are null, which count as absent from a server only', (members, client, target) => {
    expect(fromClient(members)).toBe(client);
    expect(fromTarget(members)).toBe(target);
  });

  test.each([
    ['"id":1,"id":2,"method":"ping"', 'duplicate key "id"'],
    ['"id":1,"method":"ping","m\\u0065thod":"pong"', 'duplicate key "method"'],
    ['"id":1,"method":"m","params":{"name":"a","name":"b"}', 'duplicate key "name"'],
    [
      '"id":1,"method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}',
      'duplicate key "progressToken"',
    ],
    ['"id":1,"method":"m","params":{"ref":{"name":"a","name":"b"}}', 'duplicate key "name"'],
    ['"id":1,"Method":"m","method":"m"', 'the key "Method" differs from "method" in case only'],
    ['"ID":1,"method":"m"', 'the key "ID" differs from "id" in case only'],
    ['"id":1,"method":"m","Params":{}', 'the key "Params" differs from "params" in case only'],
    ['"id":1,"method":"m","params":{"Name":"a"}', 'the key "Name" differs from "name" in case only'],
    ['"id":1,"method":"m","params":{"_META":{}}', 'the key "_META" differs from "_meta" in case only'],
    ['"id":1,"method":"m","params":{"ref":{"URI":"a"}}', 'the key "URI" differs from "uri" in case only'],
    [
      '"id":1,"method":"m","params":{"_meta":{"ProgressToken":1}}',
      'the key "ProgressToken" differs from "progressToken" in case only',
    ],
  ])('%s is ambiguous', (members, problem) => {
    expect(fromClient(members)).toBe(`-32600 ${problem}`);
  });

  test('a duplicate key in arguments is ambiguous for rules, and no concern of a server', () => {
    const members = '"id":1,"method":"m","params":{"arguments":{"deep":{"a":1,"a":2}}}';
    expect(fromClient(members)).toMatch(/^-32600 duplicate key /);
    expect(fromTarget(members)).toContain('request 1 m');
  });

  test.each(['{"name":[1]}', '{"ref":"a","_meta":7}', '{"ref":null,"_meta":[{"progressToken":1}]}'])(
    'params %s are left to the code that uses them',
    (params) => {
      expect(fromClient(`"id":1,"method":"m","params":${params}`)).toBe(`request 1 m ${params}`);
    },
  );
});

describe('responses', () => {
  test.each([
    ['"id":1,"result":{}', 'response 1 {} {}'],
    ['"id":"a","result":{"a":1}', 'response "a" {} {"a":1}'],
    ['"id":null,"result":{}', 'response null {} {}'],
    ['"id":1,"error":{"code":1,"message":"m"}', 'response 1 {} {"code":1,"message":"m"}'],
    ['"id":null,"error":{"code":1,"message":"m"}', 'response null {} {"code":1,"message":"m"}'],
    [
      '"id":1,"error":{"code":1,"message":"m","data":[2]}',
      'response 1 {} {"code":1,"message":"m","data":[2]}',
    ],
    // No id at all.
    ['"result":{}', 'response null {} {}'],
    ['"error":{"code":1,"message":"m"}', 'response null {} {"code":1,"message":"m"}'],
    // Serializers that write all members.
    ['"id":1,"method":null,"params":null,"result":{"a":1},"error":null', 'response 1 {} {"a":1}'],
    ['"id":1,"result":null,"error":{"code":1,"message":"m"}', 'response 1 {} {"code":1,"message":"m"}'],
    ['"id":1,"result":null', 'response 1 {} {}'],
    ['"id":1,"params":{"a":1},"result":{}', 'response 1 {} {}'],
    // An error that says something outweighs a result; one that says nothing is none.
    ['"id":1,"result":{"a":1},"error":{"code":1,"message":"m"}', 'response 1 {} {"code":1,"message":"m"}'],
    ['"id":1,"result":{"a":1},"error":{}', 'response 1 {} {"a":1}'],
    ['"id":1,"result":{"a":1},"error":false', 'response 1 {} {"a":1}'],
    ['"id":1,"result":{"a":1},"error":""', 'response 1 {} {"a":1}'],
    ['"id":1,"result":{"a":1},"error":0', 'response 1 {} {"a":1}'],
    ['"id":1,"result":{"a":1},"error":[]', 'response 1 {} {"a":1}'],
    // Results that are no objects.
    [
      '"id":1,"result":7',
      'response 1 {} {"code":-32603,"message":"the result of the response is not an object","data":7}',
    ],
    [
      '"id":1,"result":[1]',
      'response 1 {} {"code":-32603,"message":"the result of the response is not an object","data":[1]}',
    ],
    [
      '"id":1,"result":"a"',
      'response 1 {} {"code":-32603,"message":"the result of the response is not an object","data":"a"}',
    ],
    [
      '"id":1,"result":true',
      'response 1 {} {"code":-32603,"message":"the result of the response is not an object","data":true}',
    ],
    // Neither.
    [
      '"id":1,"error":null',
      'response 1 {} {"code":-32603,"message":"the response has neither a result nor an error with a message"}',
    ],
    [
      '"id":1,"error":{}',
      'response 1 {} {"code":-32603,"message":"the response has neither a result nor an error with a message","data":{}}',
    ],
    // Errors of other shapes.
    ['"id":1,"error":"no disk"', 'response 1 {} {"code":-32603,"message":"no disk","data":"no disk"}'],
    ['"id":1,"error":7', 'response 1 {} {"code":-32603,"message":"7","data":7}'],
    ['"id":1,"error":["a"]', 'response 1 {} {"code":-32603,"message":"[\\"a\\"]","data":["a"]}'],
    ['"id":1,"error":true', 'response 1 {} {"code":-32603,"message":"true","data":true}'],
    [
      '"id":1,"error":{"code":"-32001","message":"m"}',
      'response 1 {} {"code":-32001,"message":"m","data":{"code":"-32001","message":"m"}}',
    ],
    [
      '"id":1,"error":{"code":"-32001","message":"m","data":5}',
      'response 1 {} {"code":-32001,"message":"m","data":5}',
    ],
    [
      '"id":1,"error":{"code":"E1","message":"m"}',
      'response 1 {} {"code":-32603,"message":"m","data":{"code":"E1","message":"m"}}',
    ],
    [
      '"id":1,"error":{"code":1.5,"message":"m","data":5}',
      'response 1 {} {"code":-32603,"message":"m","data":{"code":1.5,"message":"m","data":5}}',
    ],
    [
      '"id":1,"error":{"code":9007199254740993,"message":"m"}',
      'response 1 {} {"code":-32603,"message":"m","data":{"code":9007199254740992,"message":"m"}}',
    ],
    [
      '"id":1,"error":{"code":1,"message":null}',
      'response 1 {} {"code":1,"message":"the server gave no reason","data":{"code":1,"message":null}}',
    ],
    [
      '"id":1,"error":{"code":1}',
      'response 1 {} {"code":1,"message":"the server gave no reason","data":{"code":1}}',
    ],
    [
      '"id":1,"error":{"code":1,"message":{"a":1},"data":null}',
      'response 1 {} {"code":1,"message":"{\\"a\\":1}","data":null}',
    ],
  ])('%s is read as %s', (members, expected) => {
    expect(fromTarget(members)).toBe(expected);
    expect(fromClient(members)).toBe(expected);
  });

  test.each([
    ['"id":1,"method":null,"result":{}', '"id":1,"result":{}'],
    ['"id":1,"params":{},"result":{}', '"id":1,"result":{}'],
    ['"id":1,"result":{},"error":null', '"id":1,"result":{}'],
    ['"result":{}', '"id":null,"result":{}'],
    ['"id":1,"result":{"n":1.0},"other":7', '"id":1,"result":{"n":1.0}'],
  ])('%s is passed on as %s', (received, passedOn) => {
    const { text, method } = parseMessage(`{"jsonrpc":"2.0",${received}}`, TARGET_BOUNDS);
    expect([text, method]).toEqual([`{"jsonrpc":"2.0",${passedOn}}`, '']);
  });

  test('an error whose code is an empty text has no code', () => {
    expect(fromTarget('"id":1,"error":{"code":"","message":"m"}')).toContain('"code":-32603');
  });

  test.each(['1.5', 'true', '[]', '{}', '1e999'])('an id %s is refused', (id) => {
    expect(fromTarget(`"id":${id},"result":{}`)).toBe(
      '-32600 expected "id" to be a string or a whole number',
    );
  });
});

describe('ids', () => {
  test.each([
    ['1', '1'],
    ['"a"', '"a"'],
    ['7.0', '7'],
    ['1e2', '100'],
    ['-0', '0'],
    ['"\\u0061"', '"a"'],
    ['"a b"', '"a b"'],
    ['123456789012345678', '123456789012345678'],
    ['1.5', '1.5'],
  ])('%s is the same as %s', (text, canonical) => {
    expect(canonicalId(text)).toBe(canonical);
  });

  test.each([
    ['7', 7],
    ['"7"', 7],
    ['7.0', 7],
    ['7.00', 7],
    ['"7.0"', 7],
    ['7.5', undefined],
    ['-7', undefined],
    ['"a7"', undefined],
    ['7a', undefined],
    ['null', undefined],
    ['1234567890123456', undefined],
    [undefined, undefined],
  ])('%s names the request %s', (id, number) => {
    expect(requestNumber(id)).toBe(number);
  });

  test.each([
    [7, 7],
    ['7', 7],
    [7.5, undefined],
    [null, undefined],
    [{ toString: 7 }, undefined],
    [[7], undefined],
    [true, undefined],
  ])('the member %j names the request %s', (id, number) => {
    expect(numberOfId(id)).toBe(number);
  });

  test.each([
    ['1', '1', true],
    ['1', '"1"', true],
    ['"1"', '1.0', true],
    ['"a"', '"\\u0061"', true],
    ['1', '2', false],
    ['"a"', '"b"', false],
    ['"a"', '1', false],
  ])('%s and %s are the same token: %s', (sent, received, same) => {
    expect(isSameId(sent, received)).toBe(same);
  });

  test('another id replaces that of a message, and a notification gets none', () => {
    expect(withId(parseMessage('{"jsonrpc":"2.0","id" : "a" ,"method":"m"}'), '7')).toBe(
      '{"jsonrpc":"2.0","id" : 7 ,"method":"m"}',
    );
    expect(withId(parseMessage('{"jsonrpc":"2.0","method":"m"}'), '7')).toBe(
      '{"jsonrpc":"2.0","method":"m"}',
    );
  });

  test.each([
    ['"id":7,"result":{}', 1, 2, 7],
    ['"id":"7","result":{}', 1, 2, 7],
    ['"id":"x","result":{}', 1, 2, undefined],
    ['"id":null,"result":{}', 1, 2, 1],
    ['"result":{}', 1, 2, 1],
    ['"id":null,"result":{}', undefined, 2, undefined],
    ['"id":null,"error":{"code":1,"message":"m"}', undefined, 2, 2],
    ['"id":null,"error":{"code":1,"message":"unknown notification"}', undefined, 2, undefined],
    ['"id":null,"error":{"code":1,"message":"m"}', undefined, undefined, undefined],
  ])('%s in reply to %s, with %s as the only call, answers %s', (members, inReplyTo, onlyCall, expected) => {
    const message = parseMessage(`{"jsonrpc":"2.0",${members}}`, TARGET_BOUNDS);
    expect(answeredRequest(message, inReplyTo, onlyCall)).toBe(expected);
  });
});

describe('the id of an invalid message', () => {
  test.each([
    ['{"id":1,"method":"m","params":7}', '1', undefined, '1'],
    ['{"id":"a","method":"m"}', '"a"', undefined, '"a"'],
    ['{"jsonrpc":"2.0","id":1}', '1', '1', undefined],
    [' {"id":1,"method":"m"}', '1', undefined, undefined],
    ['{"id":1.5,"method":"m"}', undefined, undefined, undefined],
    ['{"id":null,"method":"m"}', undefined, undefined, undefined],
    ['{"id":{},"method":"m"}', undefined, undefined, undefined],
    ['{"id":1,"ID":2,"method":"m"}', undefined, undefined, undefined],
    ['{"ID":2,"method":"m"}', '2', undefined, '2'],
    ['{"jsonrpc":"2.0","id":1,"id":2}', undefined, '1', undefined],
    // kud/mcp-jenkins#6: a line of a log, unless what follows cannot be read.
    ['{"level":"info","id":1,"msg":"ready"}', '1', undefined, undefined],
    ['{"id":1,"x":nonsense}', '1', '1', undefined],
    ['{"level":"info","id":1,"result":{}}', undefined, undefined, undefined],
    ['{"id":1,"error":"no","level":"error"}', undefined, undefined, undefined],
    ['{"id":1,"result":{}}', undefined, '1', undefined],
    ['{"id":1,"result":{},"error":null}', undefined, '1', undefined],
    ['{"jsonrpc":"1.0","id":1,"result":{},"x":1}', undefined, '1', undefined],
    ['{"method":"m"}', undefined, undefined, undefined],
    ['[{"id":1,"method":"m"}]', undefined, undefined, undefined],
    ['"id"', undefined, undefined, undefined],
    ['', undefined, undefined, undefined],
    ['{"id":nonsense,"method":"m"}', undefined, undefined, undefined],
  ])(
    'of %s is %s for a request, %s for a response, %s for a request of a server',
    (text, request, response, own) => {
      expect([idOfRequest(text), idOfInvalid(text), idOfInvalidRequest(text)]).toEqual([
        request,
        response,
        own,
      ]);
    },
  );
});
