import { VERSION } from '../../core/version.ts';
import type { Run } from '../context.ts';

export const run: Run<{ output: string }> = async ({ output }, { stdout }) => {
  const node = process.versions.node;
  stdout.write(
    output === 'json'
      ? `${JSON.stringify({ version: VERSION, node })}\n`
      : `agctl ${VERSION} (Node.js ${node})\n`,
  );
  return 0;
};
