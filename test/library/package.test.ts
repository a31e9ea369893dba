import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_NAME } from '../../src/core/version.ts';
import { blocksIn } from '../kit/documentation.ts';
import { temporaryFolder } from '../kit/folder.ts';

// A program that has installed the built package.

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** Uses all of the library, as strictly as TypeScript can check it. */
const PROGRAM = `
import { ConfigError, createGateway, type Gateway, type GatewayConfig, type RequestFacts } from '${PACKAGE_NAME}';
import { assertThat, matchers, stubMcpServer, stubModel, testGateway } from '${PACKAGE_NAME}/testing';

const config: GatewayConfig = {
  gateways: {
    default: { port: 0, address: '127.0.0.1', routes: [{ policies: { directResponse: { status: 201, body: 'x' } } }] },
  },
};
const signals = (): number => process.eventNames().length;
const before = signals();
const gateway: Gateway = await createGateway(config, { listen: true });
const facts: RequestFacts[] = [];
const stop: () => void = gateway.on('request', (request) => facts.push(request));
gateway.on('log', ({ level, scope, message }) => \`\${level} \${scope} \${message}\`);
const statuses: number[] = [(await fetch(gateway.url)).status, (await gateway.handle(new Request(gateway.url))).status];
await gateway.reload(config);
const wrong: unknown = { gatways: {} };
const error: unknown = await createGateway(wrong as GatewayConfig).catch((reason: unknown) => reason);
const path: readonly (string | number)[] | undefined = error instanceof ConfigError ? error.problems[0]?.path : undefined;
stop();
await gateway.close();
const status: number | undefined = facts[0]?.status;
console.log(JSON.stringify({ statuses, status, path, handlers: signals() - before }));
// @ts-expect-error -- no key of the type
const other: GatewayConfig = { gateways: { default: { prot: 1 } } };
void other;
void [assertThat, matchers, stubMcpServer, stubModel, testGateway];
`;

describe('a program with the installed package', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeAll(async () => {
    folder = await temporaryFolder();
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root });
    const [packed] = Object.values(JSON.parse(stdout) as Record<string, { files: { path: string }[] }>);
    const installed = join(folder.path, 'node_modules', PACKAGE_NAME);
    for (const { path } of packed?.files ?? []) {
      mkdirSync(dirname(join(installed, path)), { recursive: true });
      cpSync(join(root, path), join(installed, path));
    }
    symlinkSync(join(root, 'node_modules'), join(installed, 'node_modules'));
    for (const scope of ['@types', '@modelcontextprotocol'])
      mkdirSync(join(folder.path, 'node_modules', scope), { recursive: true });
    for (const name of [
      '@types/node',
      'undici-types',
      'openai',
      '@modelcontextprotocol/client',
      'vitest',
      'zod',
    ])
      symlinkSync(join(root, 'node_modules', name), join(folder.path, 'node_modules', name));
    writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder.path, 'program.ts'), PROGRAM);
    // These packages are not among those of the tests.
    writeFileSync(
      join(folder.path, 'hono.d.ts'),
      `declare module 'hono' {
        interface Context { req: { raw: Request } }
        export class Hono { all(path: string, handler: (c: Context) => Promise<Response>): void }
      }
      declare module '@hono/node-server' {
        type Incoming = import('node:http').IncomingMessage;
        export function getRequestListener(
          answer: (request: Request, from: { incoming: Incoming }) => Promise<Response>,
        ): import('node:http').RequestListener;
      }
      declare module '@hono/node-server/conninfo' {
        export function getConnInfo(c: import('hono').Context): { remote: { address?: string } };
      }`,
    );
  });
  afterAll(() => folder.remove());

  test.each([
    ['nodenext', 'nodenext'],
    ['bundler', 'preserve'],
  ])(
    'its types and those of its documentation check with every strict option and moduleResolution %s',
    async (moduleResolution, module) => {
      const compilerOptions = {
        target: 'es2024',
        module,
        moduleResolution,
        lib: ['es2024', 'esnext.disposable'],
        types: ['node'],
        noEmit: true,
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        noPropertyAccessFromIndexSignature: true,
        verbatimModuleSyntax: true,
        // Of packages that the examples use.
        skipLibCheck: true,
      };
      const file = join(folder.path, `tsconfig.${moduleResolution}.json`);
      const examples = ['docs/library.md', 'docs/library-testing.md', 'docs/policies.md']
        .flatMap((page) => blocksIn(page))
        .filter(({ language }) => language === 'ts');
      expect(examples.length).toBeGreaterThan(3);
      const files = examples.map(({ text }, at) => {
        writeFileSync(join(folder.path, `example${at}.ts`), `${text}\nexport {};\n`);
        return `example${at}.ts`;
      });
      writeFileSync(file, JSON.stringify({ compilerOptions, files: ['program.ts', 'hono.d.ts', ...files] }));
      const own = join(folder.path, `tsconfig.${moduleResolution}.own.json`);
      const strict = { ...compilerOptions, skipLibCheck: false };
      writeFileSync(own, JSON.stringify({ compilerOptions: strict, files: ['program.ts'] }));
      const tsc = join(root, 'node_modules/.bin/tsc');
      // One way to find modules is enough for the examples.
      for (const project of moduleResolution === 'nodenext' ? [file, own] : [own]) {
        const options = ['-p', project, '--checkers', '1'];
        const { stdout } = await run(tsc, options, { cwd: folder.path }).catch((error) => error);
        expect(stdout).toBe('');
      }
    },
  );

  test('it serves, ends by itself, adds no handler to the process and prints nothing of its own', async () => {
    const { stdout, stderr } = await run(process.execPath, ['program.ts'], {
      cwd: folder.path,
      timeout: 60_000,
    });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({ statuses: [201, 201], status: 201, path: ['gatways'], handlers: 0 });
  });

  test('the examples of docs/library-testing.md pass with vitest, node:test and without a test runner', async () => {
    const write = (name: string, text: string): void => writeFileSync(join(folder.path, name), text);
    const examples = blocksIn('docs/library-testing.md').filter(({ language }) => language === 'ts');
    for (const [at, name] of [
      'agent.test.ts',
      'recorded.test.ts',
      'file.ts',
      'strangers.ts',
      'vitest.setup.ts',
      'matchers.test.ts',
    ].entries())
      write(name, examples[at]?.text ?? '');
    write('vitest.config.ts', `export default { test: { setupFiles: ['vitest.setup.ts'] } };`);
    write(
      'gateway.yaml',
      JSON.stringify({
        gateways: { default: { port: 1 } },
        config: { database: { url: '$DATABASE_URL' } },
        llm: {
          models: [{ name: '*', provider: 'openAI', params: { baseUrl: '$MODEL_URL', apiKey: 'k' } }],
          policies: { apiKey: { mode: 'strict', keys: [{ key: 'key-of-the-agent' }] } },
        },
        mcp: { targets: [{ name: 'files', mcp: { host: '$FILES_URL' } }] },
      }),
    );
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const options = { cwd: folder.path, timeout: 60_000 };
    write('agent.yaml', JSON.stringify({ llm: { models: [{ name: '*', provider: 'echo' }] } }));
    const recording = { ...options, env: { ...process.env, RECORD: '1' } };
    await run(process.execPath, [vitest, 'run', 'recorded.test.ts'], recording);
    // What was recorded is enough from now on.
    rmSync(join(folder.path, 'agent.yaml'));
    // The report for programs: where CI is set, vitest writes colors into a pipe.
    await run(process.execPath, [vitest, 'run', '--reporter=json', '--outputFile=report.json'], options);
    expect(JSON.parse(readFileSync(join(folder.path, 'report.json'), 'utf8'))).toMatchObject({
      numPassedTests: 4,
      numTotalTests: 4,
    });
    const other = await run(process.execPath, ['--test', '--test-reporter=tap', 'strangers.ts'], options);
    expect(other.stdout).toContain('# pass 1\n');
    expect(await run(process.execPath, ['file.ts'], options)).toEqual({ stdout: '', stderr: '' });
    expect(examples.length).toBe(6);
  });

  test('its heap does not grow with the gateways that it starts and closes', async () => {
    const program = `
      import { createGateway } from '${PACKAGE_NAME}';
      const routes = [{ policies: { directResponse: { status: 201, body: 'x' } } }];
      const config = { gateways: { default: { port: 0, address: '127.0.0.1', routes } } };
      const used = async () => {
        await new Promise((resolve) => setImmediate(resolve));
        gc();
        return process.memoryUsage().heapUsed;
      };
      const start = async (count) => {
        for (let at = 0; at < count; at += 1) {
          await using gateway = await createGateway(config, { listen: at % 2 === 0 });
          await (await gateway.fetch('/')).text();
        }
      };
      await start(30);
      const before = await used();
      await start(60);
      const grown = await used() - before;
      console.log(JSON.stringify({ grown, handles: process.getActiveResourcesInfo() }));`;
    const file = join(folder.path, 'heap.mjs');
    writeFileSync(file, program);
    const { stdout } = await run(process.execPath, ['--expose-gc', file], {
      cwd: folder.path,
      timeout: 60_000,
    });
    const { grown, handles } = JSON.parse(stdout);
    // 20 kB for each of them would be 1.2 MB.
    expect(grown).toBeLessThan(1_200_000);
    expect(handles.filter((name: string) => !/^(?:TTYWrap|PipeWrap|CloseReq)$/.test(name))).toEqual([]);
  });
});
