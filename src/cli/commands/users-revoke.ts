import { EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, membersOf, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask, notAnAdmin } from '../proxy/admin-client.ts';
import { answered } from '../proxy/answered.ts';

interface Options extends AdminOptions {
  readonly operands: readonly string[];
  readonly server?: string;
  readonly output: 'text' | 'json';
}

export const run: Run<Options> = async (options, context) => {
  const address = adminAddress(options, context);
  const path = '/api/users/revoke';
  const [user] = options.operands;
  const { body } = await ask(address, {
    method: 'POST',
    path,
    body: JSON.stringify({ user, server: options.server }),
  });
  const answer = answered(address, body.toString('utf8'), path);
  const signIns = elementsOf(answer['signIns']).map(membersOf);
  if (signIns.length === 0) throw notAnAdmin(address.shown, `its ${path} answers without sign-ins`);
  if (options.output === 'json') context.stdout.write(`${JSON.stringify({ signIns }, null, 2)}\n`);
  else
    for (const signIn of signIns) {
      const where = `${escapeControls(textIn(signIn['user']))} at ${escapeControls(textIn(signIn['server']))}`;
      const how = signIn['revoked'] === true ? 'revoked there' : 'removed here; it was not revoked there';
      context.stdout.write(`signed out ${where}: the token was ${how}\n`);
    }
  return EXIT_CODES.ok.code;
};
