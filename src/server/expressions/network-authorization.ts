import { z } from 'zod';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { ClientConnection } from '../kernel/request/client-connection.ts';
import { sourceOf } from './connection-variables.ts';
import { compileRules, ruleList } from './rules.ts';
import { networkScope } from './scopes.ts';

/** `frontendPolicies.networkAuthorization`. */
export const networkAuthorizationSchema = z
  .strictObject({
    rules: ruleList(
      'CEL expressions on `source`, one of which must be true. With the forms `allow:`, `deny:` and `require:`, a connection is closed if any `deny` rule is true or cannot be evaluated; it needs all `require` rules and, if there are any, one of the `allow` rules.',
    ),
  })
  .describe('Closes connections of clients before anything is read from them, unless the rules allow them.');

/** Returns whether a connection is allowed. */
export function compileNetworkAuthorization(
  { rules }: z.output<typeof networkAuthorizationSchema>,
  context: CompileContext,
): (client: ClientConnection) => boolean {
  const decide = compileRules(rules, 'allow', networkScope, context);
  return (client) => {
    const source = sourceOf(client);
    const { allowed } = decide((root) => (root === 'source' ? source : null));
    if (!allowed) context.log.debug('proxy::tcp', 'a connection was refused', { 'src.addr': client.label });
    return allowed;
  };
}
