import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Command, CommanderError } from 'commander';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createProgram } from '../src/cli/program.ts';
import { isLoopback, parseListenAddress } from '../src/core/listen.ts';
import { loadConfigText } from '../src/server/config/load.ts';
import { openBackends } from '../src/server/config/open-backends.ts';
import { planGateways } from '../src/server/config/plan/plan-gateways.ts';
import { policyKinds, policyKindsAt } from '../src/server/features.ts';
import { findProblems } from '../src/server/runtime/find-problems.ts';
import { codeOfPages, commandsOf } from './kit/documentation.ts';
import { temporaryFolder } from './kit/folder.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { blocks, spans } = codeOfPages();
const blocksIn = (language: string) => blocks.filter((block) => block.language === language);

test('each code block of the documentation is in a language that is checked here, or is text', () => {
  const known = ['sh', 'yaml', 'json', 'toml', 'ts', 'dockerfile', 'text'];
  const others = blocks.filter(({ language }) => !known.includes(language));
  expect(others).toEqual([]);
});

describe('configurations in the documentation', () => {
  /** What else is YAML there, by a key that only it has: files of other programs, and of keys of the memory. */
  const OTHER_FILES = ['scrape_configs', 'receivers', 'jobs', 'repos', 'model_list', 'team-red'];

  /** What examples of a part refer to. */
  const GATEWAYS = {
    default: { port: 1 },
    web: { port: 2, listeners: [{ name: 'api' }] },
    admin: { port: 3 },
  };

  /** A file with nothing but this part of one, in its place: a whole file, values of the chart, or a member of a route. */
  function wholeFile(text: string): string {
    const given = parse(text) as Record<string, unknown>;
    if ('envFromSecrets' in given) return JSON.stringify(given['config']);
    if ('gateways' in given || 'binds' in given) return text;
    const isInRoute = ['matches', 'backends'].some((key) => key in given) || isMapping(given['policies']);
    const route = { backends: [{ host: 'localhost:1' }], ...given };
    return JSON.stringify({ gateways: GATEWAYS, ...(isInRoute ? { routes: [route] } : given) });
  }
  const isMapping = (value: unknown): boolean => value !== undefined && !Array.isArray(value);

  test('a part of a configuration in the documentation says where it belongs, if it is pasted alone', () => {
    const parts = ['policies', 'backends', 'matches'];
    const helps = blocksIn('yaml').flatMap(({ text }) =>
      loadConfigText(text, 'pasted.yaml', environmentOf(text)).diagnostics.flatMap(({ path, help }) =>
        parts.includes(String(path[0])) ? [help] : [],
      ),
    );
    expect(helps.length).toBeGreaterThan(10);
    for (const help of helps)
      expect(help).toMatch(/(?:belongs in|is a field of|move `\w+` to) .*`(?:mcp|routes\[\])`/);
  });

  test('each configuration in the documentation is valid', async () => {
    const folder = await temporaryFolder();
    try {
      writeNamedFiles(folder.path);
      const problems: unknown[] = [];
      for (const { page, text } of blocksIn('yaml')) {
        if (OTHER_FILES.some((key) => key in (parse(text) as object))) continue;
        const env = environmentOf(text);
        const loaded = loadConfigText(wholeFile(text), 'gateway.yaml', env);
        for (const { severity, message, path } of await findProblems(loaded, { folder: folder.path, env }))
          if (severity === 'error') problems.push({ page, path: path.join('.'), message });
      }
      expect(problems).toEqual([]);
    } finally {
      await folder.remove();
    }
  });

  /** Whole configurations of the repository: others in the documentation are parts, of a file with such ports. */
  function wholeConfigurations(): { page: string; text: string }[] {
    const files = globSync(['examples/**/*.yaml', 'deploy/*.yaml', 'deploy/compose/gateway.yaml'], {
      cwd: root,
    });
    const values = parse(readFileSync(join(root, 'deploy/helm/agctl/values.yaml'), 'utf8')) as {
      config: object;
    };
    return [
      ...blocksIn('yaml').filter(({ text }) =>
        /^(?:gateways|binds|# file: gateway\.yaml| {2}adminAddr):?/m.test(text),
      ),
      ...files.map((page) => ({ page, text: readFileSync(join(root, page), 'utf8') })),
      { page: 'deploy/helm/agctl/values.yaml', text: JSON.stringify(values.config) },
    ];
  }

  // Metrics and health have no secrets, and plain services ask clients themselves.
  test('each whole configuration that other machines reach asks clients of models, MCP servers and the admin server for credentials', async () => {
    const all = wholeConfigurations();
    expect(all.length).toBeGreaterThan(40);
    const open: string[] = [];
    for (const { page, text } of all) {
      const { config } = loadConfigText(text, page, environmentOf(text));
      expect(config, page).toBeDefined();
      if (config === undefined) continue;
      const { adminAddr, adminRoles } = config.config;
      if (adminRoles === undefined && !isLocal(adminAddr)) open.push(`${page}: config.adminAddr`);
      for (const gateway of planGateways(config).gateways) {
        // One network of the machine is as open as all of them.
        const address = isLoopback(gateway.address ?? '') ? gateway.address : undefined;
        open.push(...openBackends({ ...gateway, address }).map(({ path }) => `${page}: ${path.join('.')}`));
      }
    }
    expect(open).toEqual([]);
  });
});

const isLocal = (text: string): boolean => {
  const address = parseListenAddress(text);
  return address?.kind !== 'tcp' || address.hosts.every(isLoopback);
};

/** A value for each variable, of the kind that its name promises. */
function environmentOf(text: string): Record<string, string> {
  // Those with a fallback keep it.
  const names = [...text.matchAll(/\$\{?([A-Z][A-Z_]*)(?!\w|:-)/g)].map(([, name]) => name as string);
  const sampleOf = (name: string): string => {
    if (name.endsWith('_HASH')) return `sha256:${'0'.repeat(64)}`;
    if (name === 'SESSION_KEY') return 'a'.repeat(64);
    return name.endsWith('PORT') ? '1' : 'value';
  };
  return Object.fromEntries(names.map((name) => [name, sampleOf(name)]));
}

/** Files that configurations in the documentation name. */
function writeNamedFiles(folder: string): void {
  mkdirSync(join(folder, 'certs'));
  const certificates = join(root, 'test/kit/certificates');
  for (const name of ['certs/api', 'certs/tls']) {
    cpSync(join(certificates, 'other.crt'), join(folder, `${name}.crt`));
    cpSync(join(certificates, 'other.key'), join(folder, `${name}.key`));
  }
  cpSync(join(certificates, 'other.crt'), join(folder, 'own-authority.pem'));
  const document = {
    openapi: '3.1.0',
    info: { title: 'shop', version: '1' },
    paths: { '/orders': { get: { operationId: 'list' } } },
  };
  const files = {
    'prices.json': { providers: {} },
    'shop.openapi.json': document,
    'shop.json': document,
    'ci-keys.json': { keys: [] },
  };
  for (const [name, value] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(value));
  writeFileSync(join(folder, 'users.htpasswd'), 'ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n');
  writeFileSync(join(folder, 'team.keys'), 'key-of-the-team\n');
  // Its code is not read.
  mkdirSync(join(folder, 'policies'));
  writeFileSync(join(folder, 'policies/team.ts'), '');
}

describe('commands in the documentation', () => {
  const scripts = blocksIn('sh').map(({ page, text }) => ({ page, text, commands: commandsOf(text) }));

  test('bash can read each script in the documentation', () => {
    const broken = scripts.filter(({ text }) => /\\\s+\n/.test(text));
    expect(broken).toEqual([]);
    const all = scripts.map(({ text }) => `(\n${text}\n)`).join('\n');
    const { status, stderr } = spawnSync('bash', ['-n'], { input: all, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
  });

  test('agctl has each command and option in the scripts of the documentation', async () => {
    const calls = scripts.flatMap(({ page, commands }) =>
      commands
        .map((words) => (words[0] === 'npx' ? words.slice(1) : words))
        .filter(([program]) => program === 'agctl')
        .map(([, ...args]) => ({ page, args })),
    );
    expect(calls.length).toBeGreaterThan(50);
    expect(await rejected(calls, [])).toEqual([]);
  });

  test('agctl has each command and option in the sentences of the documentation', async () => {
    const calls = spans
      .filter(({ text }) => /^agctl [a-z-]/.test(text))
      .map(({ page, text }) => ({ page, args: commandsOf(text.replaceAll('…', ''))[0]?.slice(1) ?? [] }));
    expect(calls.length).toBeGreaterThan(50);
    // A sentence may leave out what is not its subject.
    const incomplete = [
      'commander.missingMandatoryOptionValue',
      'commander.missingArgument',
      'commander.optionMissingArgument',
    ];
    expect(await rejected(calls, incomplete)).toEqual([]);
  });

  test('scripts of the documentation use npm scripts, files and packages that exist', () => {
    const { scripts: npm, peerDependencies } = JSON.parse(
      readFileSync(join(root, 'package.json'), 'utf8'),
    ) as {
      scripts: Record<string, string>;
      peerDependencies: Record<string, string>;
    };
    const missing: unknown[] = [];
    for (const { page, commands } of scripts)
      for (const [program, ...args] of commands) {
        const [verb = '', name = ''] = args;
        if (program === 'npm' && !(verb === 'run' ? name in npm : /^(?:install|pack|start|test)$/.test(verb)))
          missing.push({ page, script: name });
        for (const argument of args) {
          const [, file] =
            /^(?:node_modules\/agctl\/)?((?:deploy|examples|scripts)\/[^:"]+)$/.exec(argument) ?? [];
          if (file !== undefined && !existsSync(join(root, file))) missing.push({ page, file });
          const [, wanted = '', version = ''] = /^(@[\w-]+\/[\w-]+)@([\d.]+)$/.exec(argument) ?? [];
          if (program === 'npm' && wanted !== '' && !peerDependencies[wanted]?.startsWith(`^${version}`))
            missing.push({ page, package: argument });
        }
      }
    expect(missing).toEqual([]);
  });
});

interface Call {
  readonly page: string;
  readonly args: readonly string[];
}

/** Calls that the command line does not accept, with the message. Nothing is run. */
async function rejected(calls: readonly Call[], allowed: readonly string[]): Promise<object[]> {
  const found: object[] = [];
  for (const { page, args } of calls) {
    const program = createProgram(silent(), () => undefined);
    withoutActions(program);
    try {
      await program.parseAsync(args, { from: 'user' });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      if (error.exitCode !== 0 && !allowed.includes(error.code))
        found.push({ page, command: args.join(' '), message: error.message });
    }
  }
  return found;
}

function withoutActions(command: Command): void {
  if (command.commands.length === 0) command.action(() => undefined);
  for (const each of command.commands) withoutActions(each);
}

function silent() {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  return { stdout: sink, stderr: sink, env: {}, cwd: root };
}

interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
}

/** Whether a JSON Schema has a key, also inside of lists, mappings and alternatives. */
function hasKey(root: Schema, node: Schema, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return true;
  const { $ref, anyOf = [], oneOf = [], allOf = [], properties = {}, additionalProperties, items } = node;
  const child =
    properties[key] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
  if (child !== undefined && hasKey(root, child, rest)) return true;
  const named = $ref === undefined ? undefined : root.$defs?.[$ref.replace('#/$defs/', '')];
  const inside = [...anyOf, ...oneOf, ...allOf, ...[items, named].filter((each) => each !== undefined)];
  return inside.some((each) => hasKey(root, each, [key, ...rest]));
}

describe('names in the documentation', () => {
  const sources = globSync(['src/**/*.{ts,tsx}', 'test/kit/*.ts', '{bench,scripts}/**/*.mjs'], { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');

  test('each configuration key that a sentence of the documentation names exists', () => {
    const keys = spans
      .map(({ page, text }) => ({
        page,
        key: /^((?:config|frontendPolicies)(?:\.\w+)+)(?=$|[: ])/.exec(text)?.[1],
      }))
      .filter(
        ({ page, key = '' }) =>
          key !== '' && !/\.(?:yaml|toml)$/.test(key) && page !== 'docs/compatibility.md',
      );
    const schema = JSON.parse(readFileSync(join(root, 'man/config.schema.json'), 'utf8')) as Schema;
    expect(keys.length).toBeGreaterThan(30);
    expect(keys.filter(({ key = '' }) => !hasKey(schema, schema, key.split('.')))).toEqual([]);
  });

  test('each metric and diagnostic code that the documentation names exists', () => {
    const names = spans.flatMap(({ page, text }) =>
      [...text.matchAll(/\bgw_([a-z_]+[a-z])|\b(AGW\d{4})\b/g)].map(([, metric, code]) => ({
        page,
        name: code ?? (metric ?? '').replace(/_(?:total|bucket|sum|count)$/, ''),
      })),
    );
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter(({ name }) => !sources.includes(name))).toEqual([]);
  });

  test('docs/concepts.md names each policy, docs/routing.md those of gateways, docs/admin.md each endpoint', () => {
    const namesIn = (page: string): string[] =>
      spans.filter((span) => span.page === page).map(({ text }) => text);
    const policies = policyKinds.map(({ key }) => key as string);
    expect(policies.filter((key) => !namesIn('docs/concepts.md').includes(key))).toEqual([]);
    const row = /^\| a gateway or listener: .*$/m.exec(
      readFileSync(join(root, 'docs/routing.md'), 'utf8'),
    )?.[0];
    const ofGateways = policyKindsAt('gateway').map(({ key }) => `\`${key}\``);
    expect(row?.split(' | ').at(-1)).toBe(`${ofGateways.join(', ')} |`);
    const endpoints = [...sources.matchAll(/path: '(\/(?:api|debug)\/[^'?]+)'/g)].map(
      ([, path]) => path as string,
    );
    const described = namesIn('docs/admin.md').map((text) => text.replace(/\?.*|ID$/, ''));
    expect(endpoints.length).toBeGreaterThan(15);
    expect(endpoints.filter((path) => !described.includes(path.replace(':id', '')))).toEqual([]);
  });

  test('each environment variable that the documentation names is read', () => {
    const variables = spans
      .map(({ page, text }) => ({
        page,
        name:
          /^((?:AGCTL|MEMORY|EMBEDDINGS?|ADMIN|STATS|READINESS|OIDC|RUST)_[A-Z0-9_]+)(?:=.*)?$/.exec(
            text,
          )?.[1] ?? '',
      }))
      .filter(({ page, name }) => name !== '' && !page.startsWith('docs/decisions/'));
    expect(variables.length).toBeGreaterThan(20);
    expect(variables.filter(({ name }) => !sources.includes(name))).toEqual([]);
  });
});

test('each message in docs/troubleshooting.md is one of the program', () => {
  const sources = globSync('src/**/*.ts', { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n')
    .replace(/\$\{[^}]*\}/g, '…');
  const page = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');
  const messages = [...page.matchAll(/^\| (?:\d{3} )?`([^`]* [^`]*)`/gm)].map(([, text]) => text as string);
  expect(messages.length).toBeGreaterThan(25);
  const isKnown = (text: string): boolean => text.split('…').every((part) => sources.includes(part.trim()));
  expect(messages.filter((text) => !isKnown(text))).toEqual([]);
});

test('each JSON text in the documentation can be parsed', () => {
  for (const { page, text } of blocksIn('json')) {
    const complete = text.replaceAll('{…}', '{}').replaceAll('[…]', '[]');
    const values = complete.startsWith('{\n') ? [complete] : complete.split('\n');
    for (const value of values) expect(() => JSON.parse(value) as unknown, page).not.toThrow();
  }
});

test('each TOML text in the documentation can be parsed', () => {
  for (const { page, text } of blocksIn('toml')) expect(() => parseToml(text), page).not.toThrow();
});

test('each TypeScript text in the documentation can be parsed', () => {
  for (const { page, text } of blocksIn('ts')) expect(() => stripTypeScriptTypes(text), page).not.toThrow();
});

test('each line of a Dockerfile in the documentation begins with an instruction', () => {
  for (const { text } of blocksIn('dockerfile'))
    for (const line of text.split('\n').filter((each) => each !== ''))
      expect(line).toMatch(/^(?:FROM|RUN|COPY|WORKDIR|USER|ENV|CMD|ENTRYPOINT) /);
});

test('commands that show the names of items show all that a server may give them', () => {
  const shown = blocksIn('sh').flatMap(({ page, text }) =>
    [...text.matchAll(/grep -o '("name":[^']*)'/g)].map(([, pattern = '']) => ({
      page,
      names: [...'{"name":"github_get-issue.v2","title":"A"}'.matchAll(new RegExp(pattern, 'g'))].join(),
    })),
  );
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.filter(({ names }) => names !== '"name":"github_get-issue.v2"')).toEqual([]);
});
