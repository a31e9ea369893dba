import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { cli } from '../../kit/cli.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { GATEWAY_API, HELM, pythonTool, tool } from './tools.ts';

const CHART = 'helm/agctl';
const KUBERNETES = ['1.30.0', '1.34.0'];

interface Resource {
  readonly kind: string;
  readonly data?: Record<string, string>;
  readonly spec?: {
    readonly strategy?: { readonly type: string };
    readonly template?: {
      readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly Record<string, unknown>[];
        readonly volumes: readonly Record<string, unknown>[];
      };
    };
  };
}

const ALL = [
  '--set',
  'autoscaling.enabled=true,monitoring.enabled=true,envFromSecrets={keys},serviceAccount.name=gateway',
  '--set-json',
  'files=[{"name":"tls","mountPath":"/tls","secret":"tls"},{"name":"docs","mountPath":"/docs","configMap":"docs"}]',
  '--set-json',
  'podAnnotations={"a":"b"}',
  '--set-json',
  'podLabels={"team":"web"}',
  '--set',
  'ingress.enabled=true,ingress.className=nginx,ingress.hosts={a.example},networkPolicy.enabled=true',
  '--set-json',
  'ingress.tls=[{"hosts":["a.example"],"secretName":"tls"}]',
  '--set-json',
  'networkPolicy.from=[{"namespaceSelector":{"matchLabels":{"a":"b"}}}]',
  '--set-json',
  'networkPolicy.egress=[{"ports":[{"port":443}]}]',
  '--set-json',
  'extraVolumes=[{"name":"cache","emptyDir":{}}]',
  '--set-json',
  'extraVolumeMounts=[{"name":"cache","mountPath":"/cache"}]',
];

/** One replica with a volume. */
const STORED = ['--set', 'persistence.enabled=true,replicaCount=1,persistence.storageClass=fast'];

const ROUTED = [
  '--set',
  'httpRoute.enabled=true,httpRoute.parentRefs[0].name=public,httpRoute.hostnames={a.example}',
];

async function render(...args: string[]): Promise<Resource[]> {
  const { code, text, stdout } = await tool(HELM, [
    'template',
    'web',
    CHART,
    '--kube-version',
    '1.34.0',
    ...args,
  ]);
  expect(code, text).toBe(0);
  return parseAllDocuments(stdout).map((document) => document.toJS() as Resource);
}

describe('the Helm chart', () => {
  test('the Helm chart passes helm lint --strict', async () => {
    const { code, text } = await tool(HELM, ['lint', '--strict', '--kube-version', '1.34.0', CHART]);
    expect(code, text).toBe(0);
  });

  test.each(KUBERNETES)('resources of the Helm chart match the schemas of Kubernetes %s', async (version) => {
    await using folder = await temporaryFolder();
    const short = version.split('.').slice(0, 2).join('.');
    for (const args of [[], ALL, STORED]) {
      // A PodMonitor is defined by the Prometheus operator, not by Kubernetes.
      const resources = (await render(...args)).filter(({ kind }) => kind !== 'PodMonitor');
      expect(resources.map(({ kind }) => kind)).toContain('Deployment');
      const target = join(folder.path, String(args.length));
      mkdirSync(target);
      const files = resources.map((resource, index) => {
        const file = join(target, `${index}.json`);
        writeFileSync(file, JSON.stringify(resource));
        return file;
      });
      const { code, text } = await tool(pythonTool('kubernetes-validate'), [
        '--strict',
        '-k',
        short,
        ...files,
      ]);
      expect(code, text).toBe(0);
    }
  });

  test('the schema check of Kubernetes finds a misspelled key', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'a.json');
    const service = (await render()).find(({ kind }) => kind === 'Service');
    writeFileSync(file, JSON.stringify({ ...service, spec: { ...service?.spec, sesionAffinity: 'None' } }));
    expect((await tool(pythonTool('kubernetes-validate'), ['--strict', file])).code).not.toBe(0);
  });

  test('the configuration in the ConfigMap is valid, and a pod has time to drain', async () => {
    await using folder = await temporaryFolder();
    const resources = await render();
    const file = join(folder.path, 'gateway.yaml');
    writeFileSync(file, resources.find(({ kind }) => kind === 'ConfigMap')?.data?.['gateway.yaml'] ?? '');
    const { code, stderr, stdout } = await cli(['config', 'validate', '--strict', '-f', file]);
    expect(code, stdout + stderr).toBe(0);
    const pod = resources.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec;
    expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(5 + 20);
    expect(pod?.containers[0]).toMatchObject({
      startupProbe: { httpGet: { path: '/healthz/startup', port: 'health' } },
      readinessProbe: {
        httpGet: { path: '/healthz/ready', port: 'health' },
        // As docs/deploy.md says: a busy machine that reloads may answer late.
        periodSeconds: 2,
        timeoutSeconds: 2,
        failureThreshold: 3,
      },
      livenessProbe: { httpGet: { path: '/healthz/live', port: 'health' } },
      securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
    });
  });

  test.skipIf(GATEWAY_API === undefined)(
    'the HTTPRoute of the Helm chart matches the schema of the Gateway API',
    async () => {
      const crd = parse(
        readFileSync(join(GATEWAY_API as string, 'gateway.networking.k8s.io_httproutes.yaml'), 'utf8'),
      );
      const { schema } = crd.spec.versions.find(({ name }: { name: string }) => name === 'v1');
      const validate = new Ajv({ strict: false, validateFormats: false }).compile(
        closed(schema.openAPIV3Schema),
      );
      const route = (await render(...ROUTED)).find(({ kind }) => kind === 'HTTPRoute');
      expect(validate(route), JSON.stringify(validate.errors)).toBe(true);
      const wrong = { ...route, spec: { ...route?.spec, hostname: 'a.example' } };
      expect(validate(wrong)).toBe(false);
    },
  );

  test('a volume for SQLite belongs to one pod, which is replaced before the next one starts', async () => {
    const resources = await render(...STORED);
    const { spec } = resources.find(({ kind }) => kind === 'Deployment') ?? {};
    expect(spec?.strategy).toEqual({ type: 'Recreate' });
    const { volumes, containers } = spec?.template?.spec ?? {};
    expect(volumes).toContainEqual({ name: 'data', persistentVolumeClaim: { claimName: 'web-agctl' } });
    expect(containers?.[0]?.['volumeMounts']).toContainEqual({ name: 'data', mountPath: '/data' });
    expect(resources.map(({ kind }) => kind)).toContain('PersistentVolumeClaim');
    const existing = await render(...STORED, '--set', 'persistence.existingClaim=mine');
    expect(existing.map(({ kind }) => kind)).not.toContain('PersistentVolumeClaim');
    expect((await render()).map(({ kind }) => kind)).not.toContain('PersistentVolumeClaim');
  });

  // BerriAI/litellm#5318: the pods kept the configuration from before `helm upgrade`.
  test('a change of what is read at the start only replaces the pods, any other change does not', async () => {
    const sum = async (...args: string[]): Promise<string | undefined> => {
      const deployment = (await render(...args)).find(({ kind }) => kind === 'Deployment');
      return deployment?.spec?.template?.metadata.annotations['checksum/process'];
    };
    const before = await sum();
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    expect(await sum('--set', 'config.config.workers=2')).not.toBe(before);
    expect(await sum('--set', 'config.gateways.default.port=8080')).toBe(before);
    expect(await sum('--set-json', 'config.config.modelCatalog=[{"file":"a.json"}]')).toBe(before);
  });

  test('the configuration of an operator takes the place of the sample, which only its section `config` is merged with', async () => {
    const file = async (...args: string[]): Promise<Record<string, unknown>> => {
      const map = (await render(...args)).find(({ kind }) => kind === 'ConfigMap');
      return parse(map?.data?.['gateway.yaml'] ?? '') as Record<string, unknown>;
    };
    expect(Object.keys(await file())).toEqual(['config', 'gateways']);
    expect(await file('--set', 'config.config.workers=2')).toMatchObject({
      config: { workers: 2, logging: { format: 'json' } },
      gateways: { default: { port: 8080 } },
    });
    const own = await file('--set', 'config.gateways.mine.port=8080');
    expect(own).toMatchObject({ config: { workers: 'auto' }, gateways: { mine: { port: 8080 } } });
    expect(own['gateways']).toEqual({ mine: { port: 8080 } });
  });

  test('an image is named by its digest if it has one', async () => {
    const image = async (...args: string[]): Promise<unknown> =>
      (await render(...args)).find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec.containers[0]?.[
        'image'
      ];
    const digest = `sha256:${'a1'.repeat(32)}`;
    expect(await image('--set-string', `image.digest=${digest},image.tag=1`)).toBe(`agctl@${digest}`);
    expect(await image('--set-string', 'image.tag=1')).toBe('agctl:1');
  });

  test.each([
    'config.config.database.url=sqlite:///data/agctl.db?mode=rw,persistence.enabled=true,replicaCount=1',
    'config.config.database.url=sqlite:/b/agctl.db,extraVolumes[0].name=b,extraVolumeMounts[0].name=b,extraVolumeMounts[0].mountPath=/b/',
    'config.config.database.url=$DATABASE',
    'config.gateways.a.port=9090,config.gateways.a.address=127.0.0.1,config.gateways.b.port=8080',
    'config.gateways.a.port=$PORT',
    'config.binds[0].port=8080',
    'config.config.adminAddr=0.0.0.0:15000',
    'config.config.adminAddr=0.0.0.0:15000,ports[0].name=admin,ports[0].port=80,ports[0].targetPort=15000',
    'config.config.audit.file=/data/audit.jsonl,persistence.enabled=true,replicaCount=1',
    'config.config.adminAddr=$ADMIN',
  ])('the Helm chart takes the value %s', async (value) => {
    await render('--set', value);
  });

  test('`off` survives Helm, for which it is a boolean', async () => {
    await using folder = await temporaryFolder();
    const values = join(folder.path, 'values.yaml');
    const own = 'adminAddr: off';
    writeFileSync(values, `config:\n  config:\n    ${own}\n  gateways: { default: { port: 8080 } }\n`);
    const map = (await render('-f', values)).find(({ kind }) => kind === 'ConfigMap');
    const file = join(folder.path, 'gateway.yaml');
    writeFileSync(file, map?.data?.['gateway.yaml'] ?? '');
    expect(map?.data?.['gateway.yaml']).toContain('adminAddr: false');
    const { code, stdout, stderr } = await cli(['config', 'validate', '-f', file]);
    expect(code, stdout + stderr).toBe(0);
  });

  test.each([
    // BerriAI/litellm#16933: pods that were killed lost what they had not written yet.
    ['terminationGracePeriodSeconds=25', /must be more than preStopSeconds \(5\)/],
    ['config.config.connectionTerminationDeadline=1m30s', /\(90s\)/],
    ['preStopSeconds=20', /must be more than/],
    ['persistence.enabled=true', /replicaCount: 1/],
    ['persistence.enabled=true,replicaCount=1,autoscaling.enabled=true', /replicaCount: 1/],
    ['ingress.enabled=true', /hosts/],
    ['ingress.enabled=true,ingress.hosts={a},ingress.port=x', /ports has only: http/],
    ['httpRoute.enabled=true', /parentRefs/],
    ['image.digest=sha256:1', /digest/],
    ['replicas=3', /replicas/],
    ['service.type=Ingress', /service.type/i],
    ['config.config.connectionTerminationDeadline=abc', /connectionTerminationDeadline/],
    ['config.config.readinessAddr=off', /readinessAddr/],
    ['config=null', /config/],
    ['files[0].name=config,files[0].mountPath=/a,files[0].secret=s', /a volume with the name config/],
    ['extraVolumes[0].name=tmp', /a volume with the name tmp/],
    ['files[0].name=a,files[0].mountPath=/tmp/,files[0].secret=s', /\/tmp\/ belongs to the image/],
    ['files[0].name=a,files[0].mountPath=/etc/agctl/tls,files[0].secret=s', /\/etc\/agctl\/tls belongs/],
    ['files[0].name=a,files[0].mountPath=/,files[0].secret=s', /mountPath/],
    ['extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/app', /\/app belongs/],
    ['persistence.enabled=true,replicaCount=1,persistence.mountPath=/tmp', /\/tmp belongs/],
    ['ports[0].name=metrics,ports[0].port=80,ports[0].targetPort=8080', /a port with the name metrics/],
    ['ports[0].name=http,ports[0].port=80,ports[0].targetPort=15021', /15021 is the port/],
    ['service.type=null', /service/],
    ['files[0].name=a,files[0].mountPath=/a,files[0].secret=s,extraVolumes[0].name=a', /have the name a/],
    [
      'files[0].name=a,files[0].mountPath=/a,files[0].secret=s,extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/a/',
      /mounted at \/a/,
    ],
    ['autoscaling.enabled=true,autoscaling.minReplicas=11', /minReplicas is 11/],
    [
      'config.config.database.url=sqlite:///other/agctl.db,persistence.enabled=true,replicaCount=1',
      /sqlite:\/\/\/other\/agctl\.db, which is below none of the volumes that can be written: \/data/,
    ],
    [
      'config.config.database.url=sqlite://./agctl.db,persistence.enabled=true,replicaCount=1',
      /below none of the volumes/,
    ],
    ['config.config.database.url=sqlite:///data/agctl.db', /set persistence\.enabled: true/],
    [
      'config.config.database.url=sqlite:///data/agctl.db,extraVolumes[0].name=b,extraVolumeMounts[0].name=b,extraVolumeMounts[0].mountPath=/b',
      /below none of the volumes that can be written: \/b/,
    ],
    ['config.gateways.a.port=9090', /config\.gateways\.a\.port is 9090, and no `targetPort` of ports is/],
    ['config.mcp.port=3000', /config\.mcp\.port is 3000/],
    ['config.binds[0].port=9090', /config\.binds\[0\]\.port is 9090/],
    [
      'config.gateways.a.port=8080,ports[0].name=http,ports[0].port=80,ports[0].targetPort=8080,ports[1].name=b,ports[1].port=81,ports[1].targetPort=9090',
      /the targetPort 9090 of b is no port of config/,
    ],
    [
      'ports[0].name=http,ports[0].port=80,ports[0].targetPort=8080,ports[1].name=b,ports[1].port=80,ports[1].targetPort=8080',
      /two of `ports` have the port 80/,
    ],
    [
      'config.config.database.url=sqlite:///data/../b/agctl.db,persistence.enabled=true,replicaCount=1',
      /below none of the volumes/,
    ],
    [
      'config.config.database.url=sqlite:///a/agctl.db,extraVolumes[0].name=a,extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/a,extraVolumeMounts[0].readOnly=true',
      /there are none/,
    ],
    [
      'config.config.audit.file=./audit.jsonl',
      /config\.config\.audit\.file is \.\/audit\.jsonl, which is below none/,
    ],
    ['podDisruptionBudget.maxUnavailable=0', /maxUnavailable.*minimum/s],
    ['ingress.enabled=true,ingress.hosts={Not_a host}', /hosts\/0.*does not match/s],
    ['envFromSecrets={My_Secret}', /envFromSecrets\/0.*does not match/s],
    ['config.config.adminAddr=nonsense', /adminAddr/],
    [
      'extraVolumeMounts[0].name=lost,extraVolumeMounts[0].mountPath=/a',
      /extraVolumeMounts: there is no volume with the name lost/,
    ],
    ['ports[0].name=http,ports[0].port=99999,ports[0].targetPort=8080', /65535|maximum/],
  ])('the Helm chart refuses the value %s', async (value, expected) => {
    const { code, text } = await tool(HELM, ['template', CHART, '--kube-version', '1.34.0', '--set', value]);
    expect(code).not.toBe(0);
    expect(text).toMatch(expected);
  });
});

/** A schema of Kubernetes that refuses members which it does not name: an API server drops them silently. */
function closed(schema: unknown): object {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema as object;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const { type, properties, additionalProperties } = schema as Record<string, unknown>;
  // Not the members of metadata, which the schema leaves to Kubernetes.
  const isClosed = type === 'object' && properties !== undefined && additionalProperties === undefined;
  return isClosed ? { ...inner, additionalProperties: false } : inner;
}
