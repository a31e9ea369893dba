import { toCel } from '../../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../../expressions/scopes.ts';
import { defineVariable } from '../../expressions/variable.ts';
import { Slot } from '../../kernel/slot.ts';

/** Values of `metadata` from the response of the authorization service. */
export const extAuthzValues = new Slot<Readonly<Record<string, unknown>>>();

export const extAuthzVariable = defineVariable(
  'extauthz',
  { type: 'map', doc: 'Values of `metadata` of `extAuthz`, by name.' },
  (ctx) => toCel(extAuthzValues.get(ctx) ?? null),
);

/** Scope of expressions on the service's response, which is `response`. */
export const authorizationReplyScope: DocumentedScope = {
  name: 'authorizationReply',
  roots: [...REQUEST_ROOTS, 'response'],
  unavailable: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'Evaluated after external authorization has answered: `response` is its response.',
  keys: [
    'policies.extAuthz.metadata',
    'policies.extAuthz.protocol.http.metadata',
    'policies.extAuthz.protocol.http.redirect',
  ],
};
