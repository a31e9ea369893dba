import { EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask, firstLine, gatewayAt } from '../proxy/admin-client.ts';

/** The gateway answers when all open requests have ended, or when the drain timeout has expired. */
export const run: Run<AdminOptions> = async (options, context) => {
  const address = adminAddress(options, context);
  // It answers when it has ended.
  if ((await gatewayAt(address)) !== undefined)
    context.stderr.write(`${address.shown} stops after open requests\n`);
  const { body } = await ask(address, { method: 'POST', path: '/quitquitquit', silence: LIMITS.drain * 6 });
  context.stdout.write(`${firstLine(body) || 'shutdown'}\n`);
  return EXIT_CODES.ok.code;
};
