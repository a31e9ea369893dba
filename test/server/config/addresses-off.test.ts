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
