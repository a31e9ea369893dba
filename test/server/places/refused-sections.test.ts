import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';

const route = (backend: object) => ({
  gateways: { default: { port: 0 } },
  routes: [{ backends: [backend] }],
});

test.for<[string, object, string]>([
  ['services', { services: [] }, 'Kubernetes control plane'],
  ['a service as a backend', route({ service: { name: 'a', port: 1 } }), 'write `host: name:port`'],
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
