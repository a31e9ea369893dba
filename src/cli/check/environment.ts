import { lookup } from 'node:dns/promises';
import { type CheckGroup, check, ok, warn } from './check.ts';

export const environment: CheckGroup = {
  name: 'environment',
  title: () => 'environment',
  run: () => [
    check('Node.js', ok(`Node.js ${process.versions.node} (22.19 or newer is required)`)),
    check('localhost', localhost()),
  ],
};

async function localhost(): Promise<ReturnType<typeof ok>> {
  try {
    const { address } = await lookup('localhost');
    if (address === '127.0.0.1' || address === '::1') return ok(`localhost is ${address}`);
    return warn(`localhost is ${address}`, 'use 127.0.0.1 in addresses');
  } catch {
    return warn(
      'localhost does not resolve',
      'use 127.0.0.1 in addresses, or add localhost to the hosts file',
    );
  }
}
