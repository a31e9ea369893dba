import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';

const route = (backend: object) => ({
  gateways: { default: { port: 0 } },
  routes: [{ backends: [backend] }],
});

test.for<[string, object, string]>([
  ['workloads', { workloads: [] }, 'Kubernetes control plane'],
  [
    'a named backend that is a service',
    { backends: [{ name: 'a', service: { name: 'a/b', port: 1 } }] },
    'write `service` at the backend of a route',
  ],
  ['the admin server as a backend', route({ internal: 'api' }), 'the admin server is not a backend'],
  [
    'a tunnel of a mesh',
    { binds: [{ port: 1, tunnelProtocol: 'hboneGateway', listeners: [{}] }] },
    'only `direct` and `connect` are supported',
  ],
  ['ruleName', { routes: [{ ruleName: 'x' }] }, 'it names a part of a Kubernetes HTTPRoute'],
])('%s is refused with the reason', ([_name, config, reason]) => {
  const { diagnostics } = loadConfigText(JSON.stringify(config), 'test.yaml', {});
  expect(diagnostics.map(({ message, help }) => `${message} ${help}`).join('\n')).toContain(reason);
});
