import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { LIMITS } from '../src/core/limits.ts';
import { cli } from './kit/cli.ts';

// What of deploy/ can be checked without other software; the rest is in test/interop/deploy.

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly read_only?: boolean;
  readonly stop_grace_period?: string;
}

const compose = parse(read('deploy/compose/compose.yaml')) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
};

const SECRETS = {
  SESSION_KEY: '0'.repeat(64),
  POSTGRES_PASSWORD: 'password',
  GATEWAY_KEY: 'key-of-the-gateway',
  OPENAI_API_KEY: 'key-of-the-provider',
};

describe('configurations in deploy/', () => {
  test.each([
    ['deploy/gateway.yaml', {}],
    ['deploy/compose/gateway.yaml', SECRETS],
  ])('%s is valid without a warning', async (file, env) => {
    const { code, stdout, stderr } = await cli(['config', 'validate', '--strict', join(root, file)], { env });
    expect(code, stdout + stderr).toBe(0);
  });
});

describe('compose.yaml', () => {
  test('every file and volume that compose.yaml mounts exists', () => {
    for (const volume of Object.values(compose.services).flatMap(({ volumes = [] }) => volumes)) {
      const [source = ''] = volume.split(':');
      if (source.startsWith('.')) expect(existsSync(join(root, 'deploy/compose', source)), source).toBe(true);
      else expect(Object.keys(compose.volumes)).toContain(source);
    }
  });

  test('compose.yaml gives the gateway every variable that its configuration reads, and no default for a secret', () => {
    const { environment = {} } = compose.services['gateway'] as Service;
    const text = read('deploy/compose/gateway.yaml');
    const used = [...text.matchAll(/\$\{?([A-Z_]+)/g)].map(([, name]) => name as string);
    expect(Object.keys(environment).sort()).toEqual([...new Set(used)].sort());
    for (const value of Object.values(environment)) expect(value).toMatch(/^\$\{[A-Z_]+:\?/);
  });

  test('each page that starts compose.yaml sets the variables that it requires', () => {
    const required = new Set(
      [...read('deploy/compose/compose.yaml').matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name),
    );
    expect(required.size).toBeGreaterThan(3);
    for (const page of ['docs/deploy.md', 'docs/guides/prometheus.md']) {
      const [before = ''] = read(page).split('docker compose -f deploy/compose/compose.yaml up');
      const set = [...before.slice(-500).matchAll(/([A-Z_]+)=/g)].map(([, name]) => name);
      expect(new Set(set), page).toEqual(required);
    }
  });

  test('compose.yaml gives the gateway longer to stop than it drains', () => {
    const { config = {} } = parse(read('deploy/compose/gateway.yaml')) as {
      config?: { connectionTerminationDeadline?: string };
    };
    expect(config.connectionTerminationDeadline).toBeUndefined();
    const grace = Number.parseInt(compose.services['gateway']?.stop_grace_period ?? '0', 10);
    expect(grace * 1000).toBeGreaterThan(LIMITS.drain + LIMITS.drainGrace + LIMITS.spanFlush);
  });

  test('compose.yaml names exact versions, and the hosts of its services', () => {
    for (const [name, { image }] of Object.entries(compose.services))
      if (name !== 'gateway') expect(image, name).toMatch(/:[v\d][\w.-]*\d/);
    const hosts = ['gateway.yaml', 'prometheus.yaml', 'grafana/datasources.yaml'].flatMap((file) => [
      ...read(`deploy/compose/${file}`).matchAll(/(?:\/\/|@)([a-z]+):\d+|names: \[(\w+)\]/g),
    ]);
    expect(new Set(hosts.map(([, host, name]) => host ?? name))).toEqual(
      new Set(['redis', 'postgres', 'collector', 'gateway', 'prometheus']),
    );
  });
});

describe('versions in deploy/', () => {
  test('versions in deploy/ are those of package.json and of the lockfile', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    const chart = parse(read('deploy/helm/agctl/Chart.yaml')) as { version: string; appVersion: string };
    expect([chart.version, chart.appVersion]).toEqual([version, version]);
    const part = JSON.parse(read('scripts/parts/node/package.json')) as { dependencies: { node: string } };
    const { node } = part.dependencies;
    expect(read('deploy/Dockerfile')).toContain(`ARG NODE_IMAGE=node:${node}-alpine\n`);
    expect(read('docs/deploy.md')).toContain(`FROM node:${node}-alpine`);
  });

  test('the Dockerfile copies only what .dockerignore lets into the build', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'));
    const copied = [...read('deploy/Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
      ([, paths = '']) => paths.split(' '),
    );
    expect(copied.length).toBeGreaterThan(8);
    const isAllowed = (path: string): boolean =>
      allowed.some((line) => `!${path}` === line || `!${path}`.startsWith(`${line}/`));
    expect(copied.filter((path) => !isAllowed(path) || !existsSync(join(root, path)))).toEqual([]);
  });
});
