import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { Diagnostic } from '../../../src/core/diagnostic.ts';
import { createLog } from '../../../src/core/log.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { compileRuntime } from '../../../src/server/runtime/runtime.ts';

const log = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'error',
  'text',
);

/** The problems of one route's policies, which are inserted into the YAML as written, four levels deep. */
async function problemsOf(
  policies: string,
  more = '',
): Promise<{ text: string; found: readonly Diagnostic[] }> {
  const indented = policies.replace(/^(?=.)/gm, '        ');
  const text = `gateways:\n  main:\n    port: 0\n    routes:\n    - policies:\n${indented}\n      backends: [{ mcp: { targets: [{ name: a, stdio: { cmd: server } }] } }]\n    address: 127.0.0.1\n${more}`;
  const { config, source, diagnostics } = loadConfigText(text, 'test.yaml', {});
  if (config === undefined) return { text, found: diagnostics };
  const compiled = compileRuntime({ config, source, log, folder: tmpdir(), env: {} });
  await compiled.runtime.close();
  return { text, found: [...diagnostics, ...compiled.diagnostics] };
}

/** Each problem as `line:column code message`, with the text that it points at. */
function shown({ text, found }: { text: string; found: readonly Diagnostic[] }): string[] {
  return found.map(({ code, message, range }) => {
    const marked = text.slice(range.start.offset, range.end.offset);
    return `${range.start.line}:${range.start.column} ${code} ${message} <${marked}>`;
  });
}

describe('positions of expression errors', () => {
  test('an expression error points into a plain YAML scalar', async () => {
    expect(shown(await problemsOf('authorization:\n  rules:\n  - jwt.sub = request.method'))).toEqual([
      '8:21 AGW0201 unexpected `=` <=>',
    ]);
  });

  test('an expression error points into single- and double-quoted scalars with escapes', async () => {
    const rules = `authorization:
  rules:
  - "\\"a\\tb\\" == nosuch"
  - '''it''''s'' == reqest.path'`;
    expect(shown(await problemsOf(rules))).toEqual([
      '8:26 AGW0202 unknown variable `nosuch` <nosuch>',
      "9:20 AGW0201 unexpected `'s'` <''s''>",
    ]);
  });

  test('an expression error points to the right line of a block scalar', async () => {
    const rules = `authorization:
  rules:
  - |
    request.method == "GET" &&
      nosuch.path == "/a"
  - >-
    request.path == "/a" ||

    wrong(request.path)
  - |2-
      request.method ==`;
    expect(shown(await problemsOf(rules))).toEqual([
      '10:15 AGW0202 unknown variable `nosuch` <nosuch>',
      '14:13 AGW0203 unknown function `wrong` <wrong(request.path)>',
      expect.stringMatching(/^16:\d+ AGW0201 the expression ends too early/),
    ]);
  });

  test('an expression error points into a plain scalar over several lines', async () => {
    expect(
      shown(await problemsOf('authorization:\n  rules:\n  - request.method == "GET"\n    && nosuch.path')),
    ).toEqual(['9:16 AGW0202 unknown variable `nosuch` <nosuch>']);
  });

  test('an expression error points behind characters of several UTF-16 units', async () => {
    expect(shown(await problemsOf(`authorization: { rules: ['"\u00e4\u{1f680}" == nosuch'] }`))).toEqual([
      '6:44 AGW0202 unknown variable `nosuch` <nosuch>',
    ]);
  });

  test('an expression error points into a flow mapping and into allow, deny and require rules', async () => {
    const rules = 'authorization:\n  rules: [{ allow: "true" }, { deny: nosuch1 }, { require: nosuch2 }]';
    expect(shown(await problemsOf(rules))).toEqual([
      '7:46 AGW0202 unknown variable `nosuch1` <nosuch1>',
      '7:68 AGW0202 unknown variable `nosuch2` <nosuch2>',
    ]);
  });
});

describe('diagnostics of every configured expression', () => {
  const wrong = 'nosuch';
  const http = (field: string) => `extAuthz: { host: '127.0.0.1:9', protocol: { http: { ${field} } } }`;
  test.each<[string, string, string]>([
    ['extAuthz path', http(`path: ${wrong}`), ''],
    ['extAuthz header', http(`addRequestHeaders: { ':authority': ${wrong} }`), ''],
    ['extAuthz redirect', http(`redirect: ${wrong}`), ''],
    ['extAuthz metadata', http(`metadata: { who: ${wrong} }`), ''],
    [
      'extAuthz metadata beside host',
      `extAuthz: { host: '127.0.0.1:9', protocol: { http: {} }, metadata: { who: ${wrong} } }`,
      '',
    ],
    ['mcpAuthorization rule', `mcpAuthorization: { rules: [${wrong}] }`, ''],
    ['localRateLimit key', `localRateLimit: [{ maxTokens: 1, fillInterval: 1s, key: ${wrong} }]`, ''],
    [
      'apiKey location',
      `apiKey: { mode: strict, keys: [{ keyHash: sha256:${'0'.repeat(64)} }], location: { expression: ${wrong} } }`,
      '',
    ],
    ['directResponse body', `directResponse: { bodyExpression: ${wrong} }`, ''],
    ['directResponse header', `directResponse: { headers: { x-a: ${wrong} } }`, ''],
    ['accessLog.add', 'cors: {}', `frontendPolicies: { accessLog: { add: { who: ${wrong} } } }`],
    ['accessLog.filter', 'cors: {}', `frontendPolicies: { accessLog: { filter: ${wrong} } }`],
  ])('an unknown variable is reported in an expression of %s', async (_place, policies, more) => {
    const { text, found } = await problemsOf(policies, more);
    expect(found.map(({ code, message }) => ({ code, message }))).toEqual([
      { code: 'AGW0202', message: 'unknown variable `nosuch`' },
    ]);
    expect(found[0]?.range.start.offset).toBe(text.indexOf(wrong));
    expect(found[0]?.range.end.offset).toBe(text.indexOf(wrong) + wrong.length);
  });
});

describe('rules that never evaluate to a boolean', () => {
  test.each([
    ['1 + 1', 'a number, string or list'],
    ['"admin"', 'a string'],
    ['-7', 'a number'],
    ['["a"]', 'a list'],
    ['{"a": 1}', 'a map'],
    ['request.path == "/" ? 1 : "x"', 'a number'],
    ['null', 'null'],
    ['size(request.path)', 'a number'],
    ['request.path.lowerAscii()', 'a string'],
    ['request.method', 'a string'],
    ['request', 'a map'],
    ['request.startTime', 'a time'],
  ])('validation reports that the rule %s gives %s and never a boolean', async (rule, what) => {
    const message = `the expression returns ${what}, never a boolean`;
    const quoted = `'${rule}'`;
    const { text, found } = await problemsOf(`authorization: { rules: [${quoted}] }`, '');
    expect(found).toMatchObject([{ code: 'AGW0205', severity: 'error', message }]);
    expect(found[0]?.range.start.offset).toBe(text.indexOf(rule));
    const deny = await problemsOf(`mcpAuthorization: { rules: [{ deny: ${quoted} }] }`, '');
    expect(deny.found).toMatchObject([{ code: 'AGW0205', message }]);
    const filter = await problemsOf('cors: {}', `frontendPolicies: { accessLog: { filter: ${quoted} } }`);
    expect(filter.found).toMatchObject([{ code: 'AGW0205', message }]);
  });

  test.each([
    ...['true', '!request.ok', 'request.ok', 'request.path == "/" ? true : 1', 'size([]) == 0', 'f'],
    ...['jwt.admin', 'default(jwt.admin, 1)', 'json("true")', 'request.headers.a', 'has(jwt.a)'],
  ])('validation accepts the rule %s, which may evaluate to a boolean', async (rule) => {
    const { found } = await problemsOf(`authorization: { rules: ['${rule}'] }`, '');
    expect(found.filter(({ code }) => code === 'AGW0205')).toEqual([]);
  });
});

describe('variables outside their scope', () => {
  const notHere = (name: string): object => ({
    code: 'AGW0202',
    message: `the variable \`${name}\` is not available here`,
  });
  test.each([
    ['response', 'authorization: { rules: ["response.code == 200"] }'],
    ['mcp', 'authorization: { rules: [\'mcp.tool.name == "a"\'] }'],
    ['llmRequest', 'authorization: { rules: [\'llmRequest.model == "a"\'] }'],
    ['response', "extAuthz: { host: '127.0.0.1:9', protocol: { http: { path: response.body } } }"],
    ['response', 'localRateLimit: [{ maxTokens: 1, fillInterval: 1s, key: response.code }]'],
    ['response', "mcpAuthorization: { rules: ['response.code == 1'] }"],
    ['mcp', 'directResponse: { bodyExpression: mcp.methodName }'],
  ])('validation reports that %s is not available in %s', async (name, policies) => {
    const { found } = await problemsOf(policies);
    expect(found).toMatchObject([notHere(name)]);
    expect(found[0]?.help).toMatch(/^available here: request, source, destination, env, jwt, /);
  });

  test('accessLog expressions may use every variable', async () => {
    const fields =
      'a: response.code, b: mcp.tool.name, c: extauthz.x, d: jwt.sub, e: apiKey.t, f: backend.name';
    expect(
      shown(await problemsOf('cors: {}', `frontendPolicies: { accessLog: { add: { ${fields} } } }`)),
    ).toEqual([]);
    const { found } = await problemsOf(
      'cors: {}',
      'frontendPolicies: { accessLog: { add: { a: llmRequest.model } } }',
    );
    expect(found).toMatchObject([notHere('llmRequest')]);
  });
});

describe('diagnostics of names', () => {
  test('an unknown variable or field close to a known one gets a suggestion', async () => {
    const { found } = await problemsOf(
      'authorization: { rules: [\'reqest.method == "GET"\', \'request.methd == "GET"\'] }',
    );
    expect(found).toMatchObject([
      { code: 'AGW0202', help: expect.stringContaining('`request`') },
      {
        code: 'AGW0202',
        message: expect.stringContaining('methd'),
        help: expect.stringContaining('`request.method`'),
      },
    ]);
  });

  test('an unknown function close to a known one gets a suggestion', async () => {
    const { found } = await problemsOf('authorization: { rules: [\'request.path.startWith("/a")\'] }');
    expect(found).toMatchObject([{ code: 'AGW0203', help: expect.stringContaining('startsWith') }]);
  });

  test('unknown policies and fields are reported before any expression is checked', async () => {
    const { found } = await problemsOf('authorization: { rule: ["true"] }');
    expect(found.map(({ message }) => message)).toContain('unknown field `rule`');
    expect(shown(await problemsOf('authorization: { rules: [] }'))).toHaveLength(1);
    expect(shown(await problemsOf('autorization: { rules: ["true"] }'))).toHaveLength(1);
  });
});

test('validation reports all expression problems of a file at once', async () => {
  const policies = `authorization: { rules: ["nosuch1", "true"] }
extAuthz: { host: '127.0.0.1:9', protocol: { http: { path: /literal } } }
directResponse: { bodyExpression: "1 +" }`;
  const { found } = await problemsOf(policies, 'frontendPolicies: { accessLog: { filter: nosuch2 } }');
  expect(found.map(({ code, message }) => `${code} ${message}`).sort()).toEqual([
    'AGW0201 a CEL expression cannot start with `/`',
    'AGW0201 the expression ends too early',
    'AGW0202 unknown variable `nosuch1`',
    'AGW0202 unknown variable `nosuch2`',
  ]);
});

test('an invalid extAuthz host does not hide an invalid path expression', async () => {
  const { found } = await problemsOf('extAuthz: { host: authz, protocol: { http: { path: nosuch } } }');
  expect(found.map(({ code }) => code).sort()).toEqual(['AGW0104', 'AGW0202']);
});

describe('headers that never reach a policy', () => {
  const ask = (name: string) =>
    `extAuthz:\n  host: a:1\n  protocol: { http: {} }\n  includeRequestHeaders: [${name}]`;
  const key = (name: string) =>
    `apiKey:\n  mode: strict\n  keys: [{ key: k }]\n  location: { header: { name: ${name} } }`;

  test.each(['x_user', 'proxy-authorization', 'TE'])(
    'validation warns where a policy reads the header %s, which no request has',
    async (name) => {
      const message = `AGW0303 no request has the header \`${name}\` here <${name}>`;
      for (const policy of [ask(name), key(name)]) {
        const problems = await problemsOf(policy);
        expect(shown(problems)).toContainEqual(expect.stringContaining(message));
        expect(problems.found.every(({ severity }) => severity === 'warning')).toBe(true);
      }
    },
  );

  test('validation does not warn about a header with an underscore when underscores are allowed', async () => {
    const allowed = 'config: { http: { headersWithUnderscores: allow } }\n';
    expect(shown(await problemsOf(ask('x_user'), allowed))).toEqual([]);
    expect(shown(await problemsOf(ask('x-user')))).toEqual([]);
  });

  test('validation warns about a route match on a header that no request has', async () => {
    const text =
      'gateways: { main: { port: 0, routes: [{ matches: [{ headers: [{ name: x_user, value: { exact: a } }] }], policies: { directResponse: {} } }] } }\n';
    const { config, source, diagnostics } = loadConfigText(text, 'test.yaml', {});
    if (config === undefined) throw new Error(diagnostics[0]?.message);
    const compiled = compileRuntime({ config, source, log, folder: tmpdir(), env: {} });
    await compiled.runtime.close();
    expect(shown({ text, found: compiled.diagnostics })).toEqual([
      '1:71 AGW0303 no request has the header `x_user` here <x_user>',
    ]);
  });
});

test('validation warns about a route path that no normalized request has', async () => {
  for (const path of ['/a/../b', '/a%2fb', '/a\\b', '/a%zz']) {
    const text = JSON.stringify({
      gateways: {
        main: {
          port: 0,
          routes: [{ matches: [{ path: { exact: path } }], policies: { directResponse: {} } }],
        },
      },
    });
    const { config, source, diagnostics } = loadConfigText(text, 'test.yaml', {});
    if (config === undefined) throw new Error(diagnostics[0]?.message);
    const compiled = compileRuntime({ config, source, log, folder: tmpdir(), env: {} });
    await compiled.runtime.close();
    expect(compiled.diagnostics.map(({ code, message }) => `${code} ${message}`)).toEqual([
      'AGW0303 this path matches no request',
    ]);
  }
});
