import { CommandError } from '../../core/exit-codes.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { tellWhichGateway } from '../proxy/admin-client.ts';

/** Shows what a gateway is doing on a screen. */
export const run: Run<AdminOptions & { readonly color: string }> = async (options, context) => {
  const address = adminAddress(options, context);
  if (context.stdout.isTTY !== true || process.stdin.isTTY !== true || context.env['TERM'] === 'dumb')
    throw new CommandError('usage', 'top needs a terminal', 'agctl logs -f prints requests as lines');
  await tellWhichGateway(address);
  const { showTop } = await import('../tui/top/show-top.ts');
  return showTop(address, { ...context, color: options.color });
};
