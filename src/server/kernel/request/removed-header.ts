import type { CompileContext } from '../compile-context.ts';
import { HOP_BY_HOP } from './header-list.ts';

/** Warns at `context` if the configuration reads a request header that request validation removes from every request. */
export function warnOfRemovedHeader(name: string, context: CompileContext): void {
  const isUnderscored =
    name.includes('_') && context.settings.requestValidation.headersWithUnderscores !== 'allow';
  const isHopByHop = HOP_BY_HOP.has(name);
  if (!isUnderscored && !isHopByHop) return;
  context.report({
    code: 'AGW0303',
    message: `no request has the header \`${name}\` here`,
    label: isHopByHop
      ? 'hop-by-hop headers are removed before routing and policies'
      : 'headers with an underscore in their name are removed or rejected before routing and policies',
    help: isHopByHop
      ? 'use another header'
      : 'write a hyphen, or set `config.http.headersWithUnderscores: allow`',
  });
}
