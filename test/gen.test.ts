import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { apiReference } from '../scripts/types/api-reference.ts';
import { configTypes } from '../scripts/types/config-types.ts';
import { requestFactsTypes } from '../scripts/types/request-facts.ts';
import { compatibilityPage } from '../src/cli/compatibility/page.ts';
import { main } from '../src/cli/main.ts';
import { configPage } from '../src/cli/man/config-page.ts';
import { literal, prose, verbatim } from '../src/cli/man/roff.ts';
import { referenceFiles } from '../src/cli/man.ts';
import { prometheusAlerts } from '../src/cli/monitoring/alerts.ts';
import { grafanaDashboard } from '../src/cli/monitoring/dashboard.ts';
import type { SchemaNode } from '../src/cli/schema-facts.ts';
import { DIAGNOSTIC_CODES } from '../src/core/diagnostic.ts';
import { ERRORS } from '../src/core/errors.ts';
import { EXIT_CODES } from '../src/core/exit-codes.ts';
import { configJsonSchema } from '../src/server/config/json-schema.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const generated = referenceFiles();

test.each([
  ['src/library/config-types.ts', configTypes],
  ['src/library/request-facts.ts', requestFactsTypes],
  ['docs/library-api.md', apiReference],
])('%s is up to date', async (file, text) => {
  expect(readFileSync(join(root, file), 'utf8'), 'run `npm run gen`').toBe(await text());
});

test('docs/compatibility.md is up to date', () => {
  expect(readFileSync(join(root, 'docs', 'compatibility.md'), 'utf8'), 'run `npm run gen`').toBe(
    compatibilityPage(),
  );
});

test.each([
  ['deploy/grafana/agctl.json', grafanaDashboard()],
  ['deploy/prometheus/alerts.yaml', prometheusAlerts()],
])('%s is up to date', (file, text) => {
  expect(readFileSync(join(root, file), 'utf8'), 'run `npm run gen`').toBe(text);
});

describe('the man folder', () => {
  test('the man folder contains exactly the generated files', () => {
    expect(readdirSync(join(root, 'man')).sort(), 'run `npm run gen`').toEqual([...generated.keys()].sort());
  });

  test.each([...generated])('the generated file %s is up to date', (name, text) => {
    expect(readFileSync(join(root, 'man', name), 'utf8'), 'run `npm run gen`').toBe(text);
  });

  test('the man pages cover every command and every table of codes', () => {
    expect([...generated.keys()]).toEqual(
      expect.arrayContaining([
        'agctl.1',
        'agctl-serve.1',
        'agctl-gateway-serve.1',
        'agctl-config-validate.1',
      ]),
    );
    const errors = generated.get('agctl-errors.7') ?? '';
    const codes = [
      ...Object.keys(DIAGNOSTIC_CODES),
      ...Object.keys(ERRORS),
      ...Object.values(EXIT_CODES).map(({ code }) => String(code)),
    ];
    for (const code of codes) expect(errors).toContain(`\n.TP\n\\fB${code}\\fR\n`);
  });

  test('the man page of a command shows its options, arguments and examples', () => {
    const page = generated.get('agctl-config-validate.1') ?? '';
    expect(page).toContain('\\fBagctl config validate\\fR [options] [files...]');
    expect(page).toContain('.SH OPTIONS\n.TP\n\\fB\\-f, \\-\\-file <path>\\fR\n');
    expect(page).toContain('.SH GLOBAL OPTIONS\n');
    expect(page).toMatch(/\.SH EXAMPLES\n\.PP\n\.RS 4\n\.nf\nagctl config validate \\-f /);
  });

  test('agctl-expressions(7) lists the variables of each scope with type and meaning', () => {
    const page = generated.get('agctl-expressions.7') ?? '';
    expect(page).toContain('\\fBmcpAuthorization\\fR\n');
    expect(page).toContain('Variables: \\fBrequest\\fR, \\fBsource\\fR');
    expect(page).toMatch(/\n\.SS mcp\n[\s\S]*\\fBmcp\.tool\.name\\fR\nstring\n\.br\n\w/);
    expect(page).toContain('\\fBvalue.substring(a[, b])\\fR');
    expect(page).toContain('\\fBlist.exists(x, condition)\\fR');
  });

  test('the man pages contain only roff text and known roff requests', () => {
    const macros = /^\.(?:TH|ad|nh|SH|SS|PP|TP|RS|RE|br|nf|fi)(?: |$)/;
    for (const [name, text] of generated) {
      if (name.endsWith('.json')) continue;
      const control = text.split('\n').filter((line) => /^[.']/.test(line));
      expect(
        control.filter((line) => !macros.test(line)),
        name,
      ).toEqual([]);
      expect(text.split('\n').slice(1, 3), `${name}: no line ends inside a key`).toEqual(['.ad l', '.nh']);
      expect(text, name).toMatch(/^\.TH "AGCTL[^"]*" [157] "" "agctl" "agctl manual"\n[\n -~]*\n$/);
    }
  });
});

describe('roff output', () => {
  test('roff output keeps ASCII characters unchanged', () => {
    expect(literal(String.raw`a-b \ ' " ^ ~`)).toBe(String.raw`a\-b \e \(aq \(dq \(ha \(ti`);
    expect(literal('a\u2026\u{1F600}')).toBe('a\\[u2026]\\[u1F600]');
  });

  test('roff output escapes a dot at the start of a line', () => {
    expect(prose('.hidden  file')).toBe('\\&.hidden file');
    expect(verbatim(['.x'])).toContain('\\&.x');
  });

  test('roff output prints text in backticks bold and hyphens in words as hyphens', () => {
    expect(prose('a re-read of `--file`, or of -f')).toBe('a re-read of \\fB\\-\\-file\\fR, or of \\-f');
  });
});

describe('agctl-config(5)', () => {
  const range: SchemaNode = {
    type: 'object',
    properties: { low: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 3 } },
    required: ['low'],
  };

  test('agctl-config(5) shows type, default, and whether a key is required or secret', () => {
    const page = configPage({
      properties: {
        key: { type: 'string', secret: true, description: 'A key.' },
        mode: { enum: ['a', 'b'], default: 'a' },
        prefix: { type: 'string', default: '' },
        port: { type: 'integer', minimum: 0, maximum: 9 },
        ranges: { type: 'array', items: range, default: [] },
      },
      required: ['port'],
    });
    expect(page).toContain('\\fBkey\\fR\nstring, secret: masked wherever it is printed\n.br\nA key.\n');
    expect(page).toContain('\\fBmode\\fR\n\\fBa\\fR or \\fBb\\fR, default \\fBa\\fR\n');
    expect(page).toContain('\\fBprefix\\fR\nstring, default \\fB\\(dq\\(dq\\fR\n');
    expect(page).toContain('\\fBport\\fR\ninteger from 0 to 9, required\n');
    expect(page).toContain('\\fBranges\\fR\nlist of object\n');
    expect(page).toContain('\\fBranges[].low\\fR\ninteger, at least 1, required, default \\fB3\\fR\n');
  });

  test('agctl-config(5) lists a repeated group of keys once and refers to it later', () => {
    const page = configPage({ properties: { a: range, b: { additionalProperties: range } } });
    expect(page).toContain('\\fBa.low\\fR');
    expect(page).not.toContain('<name>.low');
    expect(page).toContain('map of names to object\n.br\nIts keys are those of \\fBa\\fR.');
  });
});

describe('the JSON Schema of configurations', () => {
  test('the JSON Schema of configurations has no format or keyword unknown to validators', () => {
    const shipped = JSON.parse(readFileSync(join(root, 'man/config.schema.json'), 'utf8'));
    const ajv = new Ajv({ strictSchema: true, validateFormats: true, strictTypes: false });
    // Of our own: what the gateway masks.
    addFormats.default(ajv).addKeyword('secret').addKeyword('markdownDescription');
    const check = ajv.compile(shipped);
    const withPath = (exact: string): object => ({
      routes: [{ matches: [{ path: { exact } }], backends: [{ host: '127.0.0.1:1' }] }],
    });
    expect(check(withPath('/a')), JSON.stringify(check.errors)).toBe(true);
    expect(check(withPath('a'))).toBe(false);
  });

  test('the JSON Schema of configurations describes every key', () => {
    const bare = keysOf(configJsonSchema()).filter(({ node }) => (node.description ?? '') === '');
    expect(bare.map(({ path }) => path)).toEqual([]);
  });

  test('the JSON Schema of configurations allows no unknown keys in any object', () => {
    const open = nodesOf(configJsonSchema(), 'configuration').filter(
      ({ node }) => node.properties !== undefined && node.additionalProperties !== false,
    );
    // What a resource says of itself is free-form: RFC 9728 §2 lets anybody add members. So are OpenAPI documents.
    const freeForm = /\.(?:resourceMetadata|openapi\.schema)\b/;
    expect(open.map(({ path }) => path).filter((path) => !freeForm.test(path))).toEqual([]);
  });
});

describe('example configurations', () => {
  test('the example configurations are valid without a warning', async () => {
    const files = globSync('examples/*.yaml', { cwd: root }).map((file) => join(root, file));
    expect(files).not.toEqual([]);
    const chunks: string[] = [];
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        chunks.push(String(chunk));
        done();
      },
    });
    // The only variable without a default: a key that everybody knows would protect nothing.
    const context = { stdout: stream, stderr: stream, env: { CLIENT_KEY: 'key-of-an-agent' }, cwd: root };
    const exit = await main(['config', 'validate', '--strict', ...files], context);
    expect(exit, chunks.join('')).toBe(0);
  });
});

interface NodeAt {
  readonly path: string;
  readonly node: SchemaNode;
}

/** Every schema inside `node`, itself included; a schema that is one of several alternatives has their path. */
function nodesOf(node: SchemaNode, path: string): NodeAt[] {
  const { items, additionalProperties: values, anyOf = [], oneOf = [], properties = {} } = node;
  return [
    { path, node },
    ...(items === undefined ? [] : nodesOf(items, `${path}[]`)),
    ...(typeof values === 'object' ? nodesOf(values, `${path}.*`) : []),
    ...[...anyOf, ...oneOf].flatMap((each) => nodesOf(each, path)),
    ...Object.entries(properties).flatMap(([key, child]) => nodesOf(child, `${path}.${key}`)),
  ];
}

function keysOf(schema: SchemaNode): NodeAt[] {
  return nodesOf(schema, 'configuration').flatMap(({ path, node }) =>
    Object.entries(node.properties ?? {}).map(([key, child]) => ({ path: `${path}.${key}`, node: child })),
  );
}
