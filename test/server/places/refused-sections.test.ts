import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';

const route = (backend: object) => ({
  gateways: { default: { port: 0 } },
  routes: [{ backends: [backend] }],
});

test.for<[string, object, string]>([
  ['services', { services: [] }, 'Kubernetes control plane'],
  ['a service as a backend', route({ service: { name: 'a', port: 1 } }), 'write `host: name:port`'],
  ['a dynamic backend', route({ dynamic: {} }), 'a backend has a fixed address'],
  ['an internal bind', { binds: [{ mode: 'internal', listeners: [{}] }] }, 'only `standard` is supported'],
  [
    'a tunnel',
    { binds: [{ port: 1, tunnelProtocol: 'connect', listeners: [{}] }] },
    'only `direct` is supported',
  ],
  ['ruleName', { routes: [{ ruleName: 'x' }] }, 'it names a part of a Kubernetes HTTPRoute'],
])('%s is refused with the reason', ([_name, config, reason]) => {
  const { diagnostics } = loadConfigText(JSON.stringify(config), 'test.yaml', {});
  expect(diagnostics.map(({ message, help }) => `${message} ${help}`).join('\n')).toContain(reason);
});
