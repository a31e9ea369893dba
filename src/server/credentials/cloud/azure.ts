import { z } from 'zod';
import { mapping } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { SignRequest } from '../../transport/host-backend.ts';
import { readText, textOrFile } from '../../transport/text-or-file.ts';
import { exactlyOneOf } from '../location.ts';
import { requireInstalled } from './cloud-package.ts';
import { type EntraIdentity, entraTokens } from './entra-token.ts';

const text = z.string().min(1);
const empty = z.strictObject({});

export const azureSchema = z.lazy(() =>
  z
    .strictObject({
      implicit: empty
        .optional()
        .describe(
          'The identity that the environment gives: variables, a workload identity, a managed identity, the accounts of developer tools.',
        ),
      developerImplicit: empty
        .optional()
        .describe('The account of `az`, `azd` or Azure PowerShell. For development only.'),
      explicitConfig: z
        .strictObject({
          clientSecret: mapping('An application with a secret.', {
            tenant_id: text.describe('Id of the tenant.'),
            client_id: text.describe('Id of the application.'),
            client_secret: textOrFile.meta({ secret: true }).describe('Its secret, or `{ file: … }`.'),
          }).optional(),
          managedIdentity: mapping('The managed identity of the machine.', {
            userAssignedIdentity: z
              .strictObject({
                clientId: text.optional().describe('By its client id.'),
                objectId: text.optional().describe('By its object id.'),
                resourceId: text.optional().describe('By its resource id.'),
              })
              .superRefine(exactlyOneOf('clientId', 'objectId', 'resourceId'))
              .optional()
              .describe('One of several identities. Default: that of the system.'),
          }).optional(),
          workloadIdentity: empty.optional().describe('The workload identity of the pod.'),
        })
        .superRefine(exactlyOneOf('clientSecret', 'managedIdentity', 'workloadIdentity'))
        .optional()
        .describe('One kind of identity.'),
    })
    .superRefine(exactlyOneOf('implicit', 'developerImplicit', 'explicitConfig'))
    .describe('Sends a token of Microsoft Entra ID.'),
);

/** Scopes of the two kinds of endpoints (Azure, "Configure keyless authentication with Microsoft Entra ID"). */
const SCOPE = 'https://cognitiveservices.azure.com/.default';
const FOUNDRY_SCOPE = 'https://ai.azure.com/.default';
const FOUNDRY = /\.services\.ai\.azure\.com(?::\d+)?$/;

/** Compiles the tokens; undefined if they cannot be had, which is reported. */
export function azureAuth(
  config: z.output<typeof azureSchema>,
  context: CompileContext,
): SignRequest | undefined {
  if (!requireInstalled('@azure/identity', context, '`azure`')) return undefined;
  const identity = identityOf(config, context);
  const usual = entraTokens(SCOPE, identity);
  const foundry = entraTokens(FOUNDRY_SCOPE, identity);
  return async ({ headers, authority }) => {
    const tokens = FOUNDRY.test(authority) ? foundry : usual;
    headers.set('authorization', `Bearer ${await tokens.value()}`);
  };
}

function identityOf(
  { developerImplicit, explicitConfig }: z.output<typeof azureSchema>,
  context: CompileContext,
): EntraIdentity | undefined {
  if (developerImplicit !== undefined) return { kind: 'developer' };
  if (explicitConfig === undefined) return undefined;
  const { clientSecret, managedIdentity } = explicitConfig;
  if (clientSecret !== undefined)
    return {
      kind: 'secret',
      tenantId: clientSecret.tenant_id,
      clientId: clientSecret.client_id,
      // A file that cannot be read is reported.
      secret:
        readText(clientSecret.client_secret, context.at('explicitConfig', 'clientSecret', 'client_secret')) ??
        '',
    };
  if (managedIdentity === undefined) return { kind: 'workload' };
  const { clientId, objectId, resourceId } = managedIdentity.userAssignedIdentity ?? {};
  if (clientId !== undefined) return { kind: 'managed', id: { clientId } };
  if (objectId !== undefined) return { kind: 'managed', id: { objectId } };
  return { kind: 'managed', id: resourceId === undefined ? undefined : { resourceId } };
}
