import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../kit/mcp.ts';
import { apiGateway, openApi } from '../../../../kit/openapi.ts';

/** Values that end a path segment, query, cookie, header or form field where they are not encoded. */
const HOSTILE = [
  'a/../b',
  'a;b=c',
  'a,b',
  'a.b',
  'a=b&c=d',
  'a?b#c',
  'a; c=d',
  '"a"',
  'a\r\nx: y',
  'ü %2F+',
  '\u0000',
];

const FORM = 'application/x-www-form-urlencoded';

/** The request that the API gets for a call with these arguments, or the error text of the result. */
async function sent(path: string, operation: object, args: object): Promise<Json> {
  await using shop = await apiGateway(openApi({ [path]: { post: { operationId: 'op', ...operation } } }));
  const { isError, content } = await shop.call('op', args);
  const [received] = shop.api.received;
  return isError === true ? { error: content[0].text, received } : received;
}

const parameter = (place: string, name: string, rest: object = {}) => ({
  in: place,
  name,
  schema: {},
  ...rest,
});

describe('path parameters in the styles label and matrix', () => {
  const color = { R: 100, G: 'a;b' };
  test.each([
    ['label', false, 'blue', '.blue'],
    ['label', false, ['a', 'b.c'], '.a,b%2Ec'],
    ['label', true, ['a', 'b.c'], '.a.b%2Ec'],
    ['label', false, color, '.R,100,G,a%3Bb'],
    ['label', true, color, '.R=100.G=a%3Bb'],
    ['matrix', false, 'blue', ';v=blue'],
    ['matrix', false, '', ';v'],
    ['matrix', false, ['a', 'b,c'], ';v=a,b%2Cc'],
    ['matrix', true, ['a', 'b'], ';v=a;v=b'],
    ['matrix', false, color, ';v=R,100,G,a%3Bb'],
    ['matrix', true, color, ';R=100;G=a%3Bb'],
  ])('%s with explode %s writes %j as %s', async (style, explode, value, expected) => {
    const parameters = [parameter('path', 'v', { style, explode })];
    expect((await sent('/x{v}/y', { parameters }, { path: { v: value } })).target).toBe(`/x${expected}/y`);
  });

  test.each(['label', 'matrix'])(
    'a hostile value in style %s stays one value of its segment',
    async (style) => {
      for (const value of HOSTILE) {
        const parameters = [parameter('path', 'v', { style })];
        const { target, error } = await sent('/x{v}/y', { parameters }, { path: { v: value } });
        if (error !== undefined) continue;
        const pattern = style === 'label' ? /^\/x\.([^/;,.=?#]*)\/y$/ : /^\/x;v=([^/;,=?#]*)\/y$/;
        const raw = pattern.exec(target)?.[1];
        expect(decodeURIComponent(raw as string)).toBe(value);
      }
    },
  );

  test.each([
    ['label', ''],
    ['label', '.'],
    ['label', []],
    ['matrix', {}],
    ['matrix', { w: 1 }],
  ])(
    'style %s refuses %j, which would be a dot segment, empty or another parameter',
    async (style, value) => {
      const parameters = [parameter('path', 'v', { style, explode: true }), parameter('path', 'w')];
      const { error, received } = await sent('/{v}/{w}', { parameters }, { path: { v: value, w: 'w' } });
      expect(error).toMatch(/^path/);
      expect(received).toBeUndefined();
    },
  );
});

describe('cookie parameters', () => {
  const parameters = [parameter('cookie', 'session'), parameter('cookie', 'flag', { style: 'form' })];

  test('cookie parameters are sent in one header, without cookies of the client', async () => {
    await using shop = await apiGateway(openApi({ '/x': { get: { operationId: 'op', parameters } } }), {
      headers: { cookie: 'client=1' },
    });
    await shop.call('op', { cookie: { session: 'a b', flag: true } });
    expect(shop.api.received[0]?.headers['cookie']).toBe('session=a%20b; flag=true');
    const [{ inputSchema }] = (await shop.tools()) as [Json];
    expect(Object.keys(inputSchema.properties.cookie.properties)).toEqual(['session', 'flag']);
  });

  test('a hostile value cannot set another cookie or header', async () => {
    for (const value of HOSTILE) {
      const { headers } = await sent('/x', { parameters }, { cookie: { session: value } });
      const [name, ...raw] = (headers.cookie as string).split(/[=;,]/);
      expect([name, ...raw.map(decodeURIComponent)]).toEqual(['session', value]);
      expect(headers).not.toHaveProperty('x');
    }
  });

  test('lists and objects in cookies are refused', async () => {
    for (const value of [['a'], { a: 1 }]) {
      const { error } = await sent('/x', { parameters }, { cookie: { session: value } });
      expect(error).toBe('cookie.session must be a string, number or boolean');
    }
  });

  test('callers cannot set cookies if the configuration does', async () => {
    const operation = { operationId: 'op', parameters: [parameter('cookie', 'session', { required: true })] };
    await using shop = await apiGateway(openApi({ '/x': { get: operation } }), {
      target: { headers: { Cookie: 'session=configured' } },
    });
    expect((await shop.call('op', { cookie: { session: 'own' } })).isError).toBe(true);
    await shop.call('op');
    expect(shop.api.received.map(({ headers }) => headers['cookie'])).toEqual(['session=configured']);
  });
});

describe('form bodies', () => {
  const form = (encoding: object = {}, rest: object = {}) => ({
    requestBody: { content: { [FORM]: { schema: { type: 'object' }, encoding } }, ...rest },
  });
  const fields = (body: string) => [...new URLSearchParams(body)];

  test('a form is sent with its type, a field per value, numbers as they were written, and null left out', async () => {
    const { headers, body } = await sent('/x', form(), {
      body: { a: 'x y', n: 1.5, b: true, l: [1, 2], no: null },
    });
    expect(headers['content-type']).toBe(FORM);
    expect(fields(body)).toEqual([
      ['a', 'x y'],
      ['n', '1.5'],
      ['b', 'true'],
      ['l', '1'],
      ['l', '2'],
    ]);
  });

  test('hostile names and values of fields stay one field each', async () => {
    const body = Object.fromEntries(HOSTILE.map((text, index) => [`${text}${index}`, text]));
    expect(fields((await sent('/x', form(), { body })).body)).toEqual(Object.entries(body));
  });

  test.each([
    [
      'deepObject',
      { o: { style: 'deepObject', explode: true } },
      { o: { 'k]=': '&x=' } },
      [['o[k]=]', '&x=']],
    ],
    ['form without explode', { l: { explode: false } }, { l: ['a', 'b'] }, [['l', 'a,b']]],
    ['JSON', { o: { contentType: 'application/json' } }, { o: { k: [1] } }, [['o', '{"k":[1]}']]],
  ])('encoding says that a field is %s', async (_what, encoding, body, expected) => {
    expect(fields((await sent('/x', form(encoding), { body })).body)).toEqual(expected);
  });

  test.each([
    ['an object without encoding', {}, { o: { a: 1 } }, 'body.o must not be an object'],
    ['a list of objects', {}, { l: [{ a: 1 }] }, 'body.l must consist of strings, numbers and booleans'],
    ['a list as the body', {}, [1], 'body must be an object'],
    [
      'an object that would set another field',
      { o: { style: 'form' } },
      { o: { admin: 1 }, admin: 0 },
      'body.o.admin is the name of another parameter',
    ],
  ])('%s is refused', async (_what, encoding, body, message) => {
    const { error, received } = await sent('/x', form(encoding), { body });
    expect(error).toContain(message);
    expect(received).toBeUndefined();
  });

  test('JSON is preferred if the operation accepts both', async () => {
    const requestBody = { content: { [FORM]: {}, 'application/json': {} } };
    const { headers, body } = await sent('/x', { requestBody }, { body: { a: 1 } });
    expect([headers['content-type'], body]).toEqual(['application/json', '{"a":1}']);
  });
});
