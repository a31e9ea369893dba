import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
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
  readonly ports?: readonly string[];
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

  test('compose.yaml publishes ports on this machine only', () => {
    const ports = Object.values(compose.services).flatMap((service) => service.ports ?? []);
    expect(ports).toHaveLength(3);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
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

describe('values of the Helm chart', () => {
  const defaults = parse(read('deploy/helm/agctl/values.yaml')) as Record<string, unknown>;
  const schema = JSON.parse(read('deploy/helm/agctl/values.schema.json')) as {
    properties: Record<string, { properties?: Record<string, unknown>; required?: string[] }>;
    required: string[];
  };
  const validate = new Ajv({ allErrors: true, strictTypes: false }).compile(schema);

  /** Values as Helm gives them to the schema: members are merged, and null removes a default. */
  const merged = (base: unknown, more: unknown): unknown => {
    if (!isMembers(base) || !isMembers(more)) return more;
    const all = Object.entries(more).map(([key, value]) => [key, merged(base[key], value)]);
    return Object.fromEntries(
      Object.entries({ ...base, ...Object.fromEntries(all) }).filter(([, value]) => value !== null),
    );
  };
  const problems = (values: object): string => {
    validate(merged(defaults, values));
    return (validate.errors ?? [])
      .map(({ instancePath, message }) => `${instancePath} ${message}`)
      .join('\n');
  };

  test('the schema accepts the defaults and what the guide sets, and knows every default', () => {
    expect(problems({})).toBe('');
    const [, guide = ''] =
      /# file: values\.yaml\n([\s\S]*?)```/.exec(read('docs/guides/kubernetes.md')) ?? [];
    const values = parse(guide.replaceAll(/^ {3}/gm, '')) as object;
    expect(Object.keys(values)).toContain('config');
    expect(problems(values)).toBe('');
    expect(schema.required).toEqual(Object.keys(defaults).toSorted());
    for (const [key, { properties, required }] of Object.entries(schema.properties))
      if (required !== undefined) {
        expect(required, key).toEqual(Object.keys(Object(defaults[key])));
        expect(Object.keys(properties ?? {}), key).toEqual(expect.arrayContaining(required));
      }
  });

  test.each([
    {},
    { config: { config: { connectionTerminationDeadline: '1m30s' } } },
    { config: { config: { readinessAddr: '0.0.0.0:15021', statsAddr: '[::]:15020' } } },
    { config: { config: null, gateways: { a: { port: 1 } } } },
    { files: [{ name: 'tls', mountPath: '/etc/ssl/gateway', secret: 'tls' }] },
    { extraVolumeMounts: [{ name: 'a', mountPath: '/tmp/models', subPath: 'x' }] },
    {
      env: [
        { name: 'A', value: '1' },
        { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
    },
    { podDisruptionBudget: { maxUnavailable: '50%' } },
    { ingress: { enabled: true, hosts: ['*.example.com', 'a'], className: 'nginx' } },
    { envFromSecrets: ['keys.v1'], serviceAccount: { name: 'gateway' } },
    { service: { annotations: { a: 'true' } }, global: { any: 1 } },
  ])('the chart accepts %j', (values) => {
    expect(problems(values)).toBe('');
  });

  test.each<[object, RegExp]>([
    [
      { config: { config: { connectionTerminationDeadline: 'abc' } } },
      /connectionTerminationDeadline must match/,
    ],
    [
      { config: { config: { connectionTerminationDeadline: 20 } } },
      /connectionTerminationDeadline must be string/,
    ],
    [{ config: { config: { readinessAddr: 'off' } } }, /readinessAddr must match/],
    // What YAML 1.1 makes of `off`.
    [{ config: { config: { readinessAddr: false } } }, /readinessAddr must be string/],
    [{ config: { config: { readinessAddr: '127.0.0.1:15021' } } }, /readinessAddr must match/],
    [{ config: { config: { statsAddr: ':9090' } } }, /statsAddr must match/],
    [{ config: null }, /must have required property 'config'/],
    [{ config: 'gateway.yaml' }, /config must be object/],
    [{ files: [{ name: 'a', mountPath: '/', secret: 's' }] }, /mountPath must match/],
    [{ files: [{ name: 'a', mountPath: 'tls', secret: 's' }] }, /mountPath must match/],
    [{ files: [{ name: 'a', mountPath: '/a', secret: 's', configMap: 'c' }] }, /oneOf/],
    [{ files: [{ name: 'a', mountPath: '/a' }] }, /oneOf/],
    [{ persistence: { size: '1..5Gi' } }, /size must match/],
    [{ ports: [] }, /ports must NOT have fewer/],
    [{ env: [{ name: 'A', value: 1 }] }, /value must be string/],
    [{ env: [{ name: 'A', vaule: 'x' }] }, /must NOT have additional/],
    [{ image: { pullPolicy: null } }, /image must have required property 'pullPolicy'/],
    [{ service: { type: null } }, /service must have required property 'type'/],
    [{ podAnnotations: { a: true } }, /podAnnotations\/a must be string/],
    [{ podDisruptionBudget: { maxUnavailable: 'one' } }, /maxUnavailable must match/],
    [{ ports: [{ name: '80', port: 80, targetPort: 8080 }] }, /ports\/0\/name must match/],
    [{ podLabels: { team: 'web & mobile' } }, /podLabels\/team must match/],
    [{ nodeSelector: { zone: 1 } }, /nodeSelector\/zone must be string/],
    [{ image: { tag: 'v1 beta' } }, /tag must match/],
    [{ podDisruptionBudget: { maxUnavailable: 0 } }, /maxUnavailable must be >= 1/],
    [{ podDisruptionBudget: { maxUnavailable: '0%' } }, /maxUnavailable must match/],
    [{ ingress: { hosts: ['Gateway.example.com'] } }, /hosts\/0 must match/],
    [{ ingress: { hosts: ['https://gateway.example.com'] } }, /hosts\/0 must match/],
    [{ ingress: { hosts: ['gateway.example.com:443'] } }, /hosts\/0 must match/],
    [{ ingress: { hosts: ['10.0.0.1'] } }, /hosts\/0 must match/],
    [{ ingress: { tls: [{ hosts: ['a b'] }] } }, /tls\/0\/hosts\/0 must match/],
    [{ ingress: { tls: [{ secretName: 'Gateway_TLS' }] } }, /secretName must match/],
    [{ httpRoute: { hostnames: ['a.*.example'] } }, /hostnames\/0 must match/],
    [{ httpRoute: { parentRefs: [{ name: 'My gateway' }] } }, /name must match/],
    [{ envFromSecrets: ['OPENAI_API_KEY'] }, /envFromSecrets\/0 must match/],
    [{ imagePullSecrets: [{ name: 'My_Registry' }] }, /imagePullSecrets\/0\/name must match/],
    [{ files: [{ name: 'a', mountPath: '/a', secret: 'A' }] }, /secret must match/],
    [{ serviceAccount: { name: 'a/b' } }, /serviceAccount\/name must match/],
    [{ persistence: { existingClaim: 'My claim' } }, /existingClaim must match/],
    [{ resources: { limit: {} } }, /resources must NOT have additional/],
    [{ replicaCount: '2' }, /replicaCount must be integer/],
    [{ preStopSeconds: 1.5 }, /preStopSeconds must be integer/],
    [{ autoscaling: { enabled: 'yes' } }, /enabled must be boolean/],
    [{ imagePullSecrets: ['name'] }, /imagePullSecrets\/0 must be object/],
    [{ nodeSelectors: {} }, /must NOT have additional/],
  ])('the chart refuses %j', (values, expected) => {
    expect(problems(values)).toMatch(expected);
  });
});

const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
