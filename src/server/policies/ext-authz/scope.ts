import { toCel } from '../../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../../expressions/scopes.ts';
import { defineVariable } from '../../expressions/variable.ts';
import { Slot } from '../../kernel/slot.ts';

/** Values that `metadata` took from the reply of the authorization service. */
export const extAuthzValues = new Slot<Readonly<Record<string, unknown>>>();

export const extAuthzVariable = defineVariable(
  'extauthz',
  { type: 'map', doc: 'Values that `metadata` of `extAuthz` took from the reply, by name.' },
  (ctx) => toCel(extAuthzValues.get(ctx) ?? null),
);

/** Values read from the service's reply: `response` is that reply. */
export const authorizationReplyScope: DocumentedScope = {
  name: 'authorizationReply',
  roots: [...REQUEST_ROOTS, 'response'],
  unset: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'When external authorization has answered: `response` is its reply.',
  keys: [
    'policies.extAuthz.metadata',
    'policies.extAuthz.protocol.http.metadata',
    'policies.extAuthz.protocol.http.redirect',
  ],
};
