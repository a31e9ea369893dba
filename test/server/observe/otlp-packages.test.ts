import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { refusingPort } from '../../kit/upstream.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const GRPC = '@opentelemetry/exporter-trace-otlp-grpc';
const route = { policies: { directResponse: { body: 'ok' } } };
const tracing = (config: object, more: object = {}): string =>
  routesConfig([route], { config: { adminAddr: 'off', tracing: config }, ...more });

describe('agctl without the optional OTLP/gRPC package', () => {
  let folder: string;

  // A copy of the built program with all packages except the optional one.
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'agctl-install-'));
    for (const name of ['bin', 'dist', 'package.json'])
      cpSync(join(root, name), join(folder, name), { recursive: true });
    linkPackages('node_modules');
    linkPackages('node_modules/@opentelemetry');
    rmSync(join(folder, 'node_modules', GRPC));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function linkPackages(from: string): void {
    rmSync(join(folder, from), { force: true });
    mkdirSync(join(folder, from));
    for (const name of readdirSync(join(root, from)))
      symlinkSync(join(root, from, name), join(folder, from, name));
  }

  function agctl(args: readonly string[], yaml: string): Promise<{ code: unknown; output: string }> {
    const file = join(folder, 'gateway.yaml');
    writeFileSync(file, yaml);
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [join(folder, 'bin/agctl.js'), ...args, '-f', file],
        { timeout: 20_000 },
        (error, stdout, stderr) => resolve({ code: error?.code ?? 0, output: stdout + stderr }),
      );
    });
  }

  test.each([
    ['config validate', ['config', 'validate'], tracing({ otlpEndpoint: 'http://127.0.0.1:4317' })],
    ['serve', ['serve'], tracing({ otlpEndpoint: 'http://127.0.0.1:4317' })],
    [
      'config validate, with frontendPolicies',
      ['config', 'validate'],
      tracing({}, { frontendPolicies: { tracing: { host: '127.0.0.1:4317' } } }),
    ],
  ])('a missing OTLP/gRPC package is an error that names the install command: %s', async (_, args, yaml) => {
    const { code, output } = await agctl(args, yaml);
    expect(code).not.toBe(0);
    expect(output).toContain('AGW0402');
    expect(output.replace(/\s+/g, ' ')).toContain(`\`npm install ${GRPC}@0.301\``);
    expect(output).toMatch(/otlpProtocol: http|protocol: http/);
  });

  test.each([
    ['HTTP', { otlpEndpoint: 'http://127.0.0.1:4318', otlpProtocol: 'http' }],
    ['no tracing', {}],
  ])('a configuration with %s is valid without the OTLP/gRPC package', async (_, config) => {
    expect(await agctl(['config', 'validate'], tracing(config))).toMatchObject({ code: 0 });
  });
});

test('the install command uses the range of the optional peer dependency, which is not installed by default', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect(manifest.peerDependencies).toHaveProperty([GRPC], '^0.301.0');
  for (const name of Object.keys(manifest.peerDependencies)) {
    expect(manifest.peerDependenciesMeta).toHaveProperty([name], { optional: true });
    expect({ ...manifest.dependencies, ...manifest.optionalDependencies }).not.toHaveProperty([name]);
  }
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const withScripts = Object.entries(packages as Record<string, { hasInstallScript?: true; dev?: true }>)
    .filter(([, { hasInstallScript, dev }]) => hasInstallScript && !dev)
    .map(([path]) => path);
  expect(withScripts).toEqual([]);
});

/** Writes the file of every module that is loaded to stderr. */
const HOOK = `
  import { writeSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  registerHooks({ load(url, context, next) { writeSync(2, 'loaded ' + url + '\\n'); return next(url, context); } });
`;

test.each([
  ['no tracing', undefined, [], ['@opentelemetry', '@grpc', 'protobufjs']],
  [
    'http',
    'http',
    ['sdk-trace', 'exporter-trace-otlp-proto'],
    ['otlp-grpc', '@grpc', 'protobufjs', 'sdk-node'],
  ],
  ['grpc', 'grpc', ['sdk-trace', 'exporter-trace-otlp-grpc', '@grpc'], ['otlp-proto/', 'sdk-node']],
])(
  'a gateway loads only the OpenTelemetry packages that it uses: %s',
  async (_, otlpProtocol, some, none) => {
    const otlpEndpoint = `http://127.0.0.1:${await refusingPort()}`;
    const config = otlpProtocol === undefined ? {} : { otlpEndpoint, otlpProtocol };
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(HOOK)}` };
    await using running = await serve(tracing(config), { env });
    running.kill('SIGTERM');
    const { stderr } = await running.finished;
    const loaded = stderr
      .split('\n')
      .filter((line) => line.startsWith('loaded ') && line.includes('node_modules'));
    const isLoaded = (name: string): boolean => loaded.some((line) => line.includes(name));
    expect([some.filter((name) => !isLoaded(name)), none.filter(isLoaded)]).toEqual([[], []]);
  },
);
