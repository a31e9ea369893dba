import { createElement } from 'react';
import { EXIT_CODES } from '../../../core/exit-codes.ts';
import { type Context, wantsColor } from '../../context.ts';
import type { AdminAddress } from '../../proxy/address.ts';
import { copyText, showScreen } from '../terminal-screen.ts';
import { TopApp } from './top-app.tsx';
import { TopStore } from './top-store.ts';

/**
 * Displays what a gateway is doing until the user leaves; resolves to the exit code.
 *
 * @throws CommandError if the gateway cannot be reached at first
 */
export async function showTop(
  address: AdminAddress,
  { stdout, env, cwd, color }: Context & { readonly color: string },
): Promise<number> {
  const store = new TopStore(address);
  // A missing gateway is reported in a line, not on a screen.
  await store.start();
  if (store.firstFailure !== undefined) throw store.firstFailure;
  const endCode = await showScreen(
    createElement(TopApp, {
      store,
      hasColor: wantsColor(stdout, color, env),
      copy: (text) => copyText(text, stdout),
      cwd,
    }),
    () => store.stop(),
  );
  return endCode ?? EXIT_CODES.ok.code;
}
