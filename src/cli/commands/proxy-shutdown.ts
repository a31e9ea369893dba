import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { anotherThanMeant, ask, firstLine, identityAt } from '../proxy/admin-client.ts';

/** The gateway answers when all open requests have ended, or when the drain timeout has expired. */
export const run: Run<AdminOptions> = async (options, context) => {
  const address = adminAddress(options, context);
  // It answers when it has ended.
  const gateway = await identityAt(address);
  const another = gateway && anotherThanMeant(address, gateway);
  if (another !== undefined)
    throw new CommandError('usage', another, `agctl proxy shutdown --admin ${address.shown} stops it anyway`);
  if (gateway !== undefined) context.stderr.write(`${address.shown} stops after open requests\n`);
  const { body } = await ask(address, { method: 'POST', path: '/quitquitquit', silence: LIMITS.drain * 6 });
  context.stdout.write(`${firstLine(body) || 'shutdown'}\n`);
  return EXIT_CODES.ok.code;
};
