import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';

// Programs with YAML 1.1, such as Helm, write `off` as `false`.
test('adminAddr, statsAddr and readinessAddr may be false, which is `off`', async () => {
  const text = `
config: { adminAddr: false, statsAddr: false, readinessAddr: false }
gateways: { default: { port: 15000, address: 127.0.0.1, routes: [{ policies: { directResponse: {} } }] } }
`;
  const loaded = loadConfigText(text, 'test.yaml', {});
  expect(loaded.config?.config).toMatchObject({ adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off' });
  // The port of the admin server is free for the gateway.
  const problems = await findProblems(loaded, { folder: '/', env: {} });
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
});

test.each([
  ['0.0.0.0:15000', undefined, true],
  ['"[::]:15000"', undefined, true],
  ['10.0.0.7:15000', undefined, true],
  ['10.0.0.7:15000', '{ local: viewer }', false],
  ['127.0.0.1:15000', undefined, false],
  ['localhost:15000', undefined, false],
  ['unix:/tmp/a.sock', undefined, false],
])(
  'adminAddr %s with adminRoles %s: a warning says that others may do everything: %s',
  async (address, roles, isOpen) => {
    const text = `
config: { adminAddr: ${address}${roles === undefined ? '' : `, adminRoles: ${roles}`} }
gateways: { default: { port: 8080, address: 127.0.0.1, routes: [{ policies: { directResponse: {} } }] } }
`;
    const problems = await findProblems(loadConfigText(text, 'test.yaml', {}), { folder: '/', env: {} });
    const found = problems.filter(({ message }) =>
      message.startsWith('other machines can reach the admin server'),
    );
    expect(found).toMatchObject(isOpen ? [{ severity: 'warning', path: ['config', 'adminAddr'] }] : []);
  },
);
