import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { cli } from '../../kit/cli.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { HELM, pythonTool, tool } from './tools.ts';

const CHART = 'helm/agctl';
const KUBERNETES = ['1.30.0', '1.34.0'];

interface Resource {
  readonly kind: string;
  readonly data?: Record<string, string>;
  readonly spec?: {
    readonly template?: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly Record<string, unknown>[];
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
    for (const args of [[], ALL]) {
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
      readinessProbe: { httpGet: { path: '/healthz/ready', port: 'health' } },
      livenessProbe: { httpGet: { path: '/healthz/live', port: 'health' } },
      securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
    });
  });

  test.each([
    ['replicas=3', /replicas/],
    ['service.type=Ingress', /service.type/i],
    ['ports[0].name=http,ports[0].port=99999,ports[0].targetPort=8080', /65535|maximum/],
  ])('the Helm chart refuses the value %s', async (value, expected) => {
    const { code, text } = await tool(HELM, ['template', CHART, '--kube-version', '1.34.0', '--set', value]);
    expect(code).not.toBe(0);
    expect(text).toMatch(expected);
  });
});
