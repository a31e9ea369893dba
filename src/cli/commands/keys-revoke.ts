import { EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask } from '../proxy/admin-client.ts';
import { answered, answeredKey } from '../proxy/answered.ts';

interface Options extends AdminOptions {
  readonly operands: readonly string[];
  readonly output: 'text' | 'json';
}

export const run: Run<Options> = async (options, context) => {
  const address = adminAddress(options, context);
  const { body } = await ask(address, {
    method: 'POST',
    path: '/api/keys/revoke',
    body: JSON.stringify({ key: options.operands[0] }),
  });
  const path = '/api/keys/revoke';
  const answer = answered(address, body.toString('utf8'), path);
  const key = answeredKey(address, answer, path);
  const verb = answer['wasRevoked'] === true ? 'was revoked before:' : 'revoked';
  if (options.output === 'json') context.stdout.write(`${JSON.stringify({ key }, null, 2)}\n`);
  else context.stdout.write(`${verb} \`${escapeControls(key.name)}\` (${escapeControls(key.id)})\n`);
  return EXIT_CODES.ok.code;
};
