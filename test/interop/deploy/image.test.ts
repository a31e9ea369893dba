import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';
import { buildImage, type Image } from './image.ts';
import { DEPLOY, pythonTool, tool } from './tools.ts';

/** What alpine:3.22 with libstdc++ and libgcc takes, which this machine cannot fetch. */
const BASE_BYTES = 12e6;
const USER = 65_532;

describe('the container image', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let image: Image;
  beforeAll(async () => {
    folder = await temporaryFolder();
    image = await buildImage(`${DEPLOY}Dockerfile`, folder.path);
  }, 900_000);
  afterAll(async () => {
    await folder.remove();
  });

  test('hadolint has no complaint about the Dockerfile', async () => {
    const { code, text } = await tool(pythonTool('hadolint'), ['--failure-threshold', 'style', 'Dockerfile']);
    expect([code, text]).toEqual([0, '']);
  });

  test('the container image has the program and no development files, and takes less than 200 MB', async () => {
    const { stdout } = await tool('find', ['.', '-type', 'f'], image.root);
    const files = stdout.trim().split('\n');
    expect(files).toContain('./app/dist/web/admin/index.html');
    expect(files).toContain('./app/dist/THIRD-PARTY-NOTICES.txt');
    const unwanted =
      /\.(?:map|ts|mts|cts|tsx)$|node_modules\/(?:vite|typescript|onnxruntime-node|ink)\/|\/\.npm/;
    expect(files.filter((file) => unwanted.test(file))).toEqual([]);
    const { stdout: sum } = await tool('du', ['-sb', '.'], image.root);
    const size = Number.parseInt(sum, 10) + BASE_BYTES;
    expect(size).toBeGreaterThan(100e6);
    expect(size, `${size / 1e6} MB`).toBeLessThan(200e6);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'the container image starts as an unprivileged user that can write to no file of it, answers probes, and drains on SIGTERM',
    async () => {
      expect(image.user).toBe(`${USER}:${USER}`);
      const { stdout: writable } = await tool('find', ['.', '!', '-type', 'l', '-perm', '/022'], image.root);
      expect(writable).toBe('');
      const [port, stats, probes] = [await freePort(), await freePort(), await freePort()];
      // Limits on files and address space; a home folder that does not exist, because nothing may be written.
      const child = spawn(
        'prlimit',
        [
          '--nofile=1024',
          '--core=0',
          join(image.root, image.entrypoint[0]),
          ...image.entrypoint.slice(1),
          ...image.command,
        ],
        {
          uid: USER,
          gid: USER,
          cwd: join(image.root, image.workdir),
          env: {
            ...image.env,
            PORT: String(port),
            STATS_ADDR: `127.0.0.1:${stats}`,
            READINESS_ADDR: `127.0.0.1:${probes}`,
            ADMIN_ADDR: 'off',
            PATH: '/usr/bin:/bin',
            HOME: '/nonexistent',
          },
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      );
      let text = '';
      child.stdout.on('data', (chunk) => (text += chunk));
      child.stderr.on('data', (chunk) => (text += chunk));
      const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve([code, signal])));
      try {
        await until(() => text.includes('"message":"ready"'), 30_000).catch(() => {
          throw new Error(text);
        });
        for (const probe of ['live', 'ready', 'startup'])
          expect((await fetch(`http://127.0.0.1:${probes}/healthz/${probe}`)).status).toBe(200);
        expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('agctl runs');
        const metrics = await (await fetch(`http://127.0.0.1:${stats}/metrics`)).text();
        expect(metrics).toMatch(/^gw_workers [1-9]/m);
        child.kill(image.stopSignal);
        expect(await ended).toEqual([0, null]);
      } finally {
        child.kill('SIGKILL');
      }
    },
  );

  test('the packages for gRPC work in /node_modules, and are missing without it', async () => {
    const dockerfile = readFileSync(`${DEPLOY}../docs/deploy.md`, 'utf8').match(
      /RUN npm install --ignore-scripts (.*)/,
    );
    await using folder = await temporaryFolder();
    const config = join(folder.path, 'gateway.yaml');
    const otlp = '{ host: "127.0.0.1:4317" }';
    writeFileSync(
      config,
      `config: { metrics: { otlp: ${otlp} } }\nfrontendPolicies: { tracing: ${otlp}, accessLog: { otlp: ${otlp} } }\ngateways: { default: { port: 1 } }\n`,
    );
    const [node, ...program] = image.entrypoint.map((part, index) =>
      index === 0 ? join(image.root, part) : part,
    );
    const validate = () => tool(node as string, [...program, 'config', 'validate', '-f', config], image.root);
    expect((await validate()).text).toContain('AGW0402');
    const packages = dockerfile?.[1]?.split(' ') ?? [];
    expect(packages).toHaveLength(3);
    await tool(
      'npm',
      ['install', '--ignore-scripts', '--no-audit', '--prefix', image.root, ...packages],
      image.root,
    );
    try {
      const { code, text } = await validate();
      expect(code, text).toBe(0);
    } finally {
      for (const name of ['node_modules', 'package.json', 'package-lock.json'])
        rmSync(join(image.root, name), { recursive: true, force: true });
    }
  }, 300_000);

  test('two builds of the container image have the same files', async () => {
    await using again = await temporaryFolder();
    const second = await buildImage(`${DEPLOY}Dockerfile`, again.path, {
      onlyStage: 'production',
      from: image,
    });
    const sums = async ({ root }: Image): Promise<string> =>
      (await tool('sh', ['-c', "find app -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum"], root)).stdout;
    expect(await sums(second)).toBe(await sums(image));
  }, 600_000);

  test('the container image has the Node.js that the tests run on, and its health check asks for readiness', () => {
    const text = readFileSync(`${DEPLOY}Dockerfile`, 'utf8');
    expect(text).toContain(`ARG NODE_IMAGE=node:${process.versions.node}-alpine`);
    expect(text).toMatch(/HEALTHCHECK[\s\S]*?15021\/healthz\/ready/);
    expect(existsSync(join(image.root, 'etc/agctl/gateway.yaml'))).toBe(true);
  });
});
