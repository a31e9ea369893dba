import type { CompileContext } from './compile-context.ts';
import { HOP_BY_HOP } from './header-list.ts';

/** Warns at `context` when the configuration reads a request header that admission removes from every request. */
export function warnOfRemovedHeader(name: string, context: CompileContext): void {
  const isUnderscored =
    name.includes('_') && context.settings.requestValidation.headersWithUnderscores !== 'allow';
  const isHopByHop = HOP_BY_HOP.has(name.toLowerCase());
  if (!isUnderscored && !isHopByHop) return;
  context.report({
    code: 'AGW0303',
    severity: 'warning',
    message: `no request has the header \`${name}\` here`,
    label: isHopByHop
      ? 'headers of one connection are removed before routes and policies see a request'
      : 'headers with an underscore in their name do not get past the listener',
    help: isHopByHop
      ? 'use a header of another name'
      : 'write a hyphen, or set `config.http.headersWithUnderscores: allow`',
  });
}
