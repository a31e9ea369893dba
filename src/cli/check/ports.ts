import { createServer } from 'node:net';
import { type CheckGroup, type CheckResult, fail, notKnown, ok, skip } from './check.ts';

export const ports: CheckGroup = {
  name: 'ports',
  title: () => 'ports',
  async run({ gateways, config }) {
    if (config === undefined) return [notKnown];
    const fixed = gateways.filter(({ port }) => port !== 0);
    if (fixed.length === 0) return [skip('no fixed port')];
    return Promise.all(fixed.map(({ port, address, name }) => checkPort(port, address, name)));
  },
};

function checkPort(port: number, host: string | undefined, name: string): Promise<CheckResult> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${code})`;
      resolve(fail(`${port} (gateway ${name}) ${why}`, `stop what uses it, or change gateways.${name}.port`));
    });
    server.listen({ port, host }, () => server.close(() => resolve(ok(`${port} is free (gateway ${name})`))));
  });
}
