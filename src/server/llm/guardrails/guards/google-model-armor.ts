import { z } from 'zod';
import { mapping } from '../../../../core/schema/mapping.ts';
import { requireInstalled } from '../../../credentials/cloud/cloud-package.ts';
import { googleTokens } from '../../../credentials/cloud/google-token.ts';
import { GuardrailError } from '../../../guardrails/outcome.ts';
import { defineGuard } from '../guard.ts';
import { hostedGuard, serviceUrl } from '../hosted-service.ts';

const name = z.string().regex(/^[A-Za-z0-9:._-]+$/, { error: 'expected an id' });

const schema = z.lazy(() =>
  mapping('Rejects texts in which a template of Google Cloud Model Armor finds a match.', {
    templateId: name.describe('Id of the template.'),
    projectId: name.describe('Google Cloud project.'),
    location: name.default('us-central1').describe('Location of the template.'),
    baseUrl: serviceUrl
      .optional()
      .describe('Server to call instead of that of the location, such as a private endpoint.'),
    policies: mapping('`backendAuth: { gcp: {} }`: Application Default Credentials, which is the default.', {
      backendAuth: mapping('How calls are authorized.', {
        gcp: mapping('Application Default Credentials. No settings.', {}),
      }).optional(),
    }).optional(),
  }),
);

/** Model Armor's API reference, "SanitizationResult". */
const answer = z.object({
  sanitizationResult: z.object({
    filterMatchState: z.enum(['MATCH_FOUND', 'NO_MATCH_FOUND']),
    invocationResult: z.string().optional(),
  }),
});

export const googleModelArmor = defineGuard({
  key: 'googleModelArmor',
  schema,
  hasScope: false,
  hasRejection: true,
  compile(config, item, context) {
    const { phase, rejection } = item;
    if (!requireInstalled('google-auth-library', context, 'this guardrail')) return undefined;
    const { templateId, projectId, location } = config;
    const { origin } = new URL(config.baseUrl ?? `https://modelarmor.${location}.rep.googleapis.com`);
    const tokens = googleTokens({ project: projectId });
    const template = `/v1/projects/${projectId}/locations/${location}/templates/${templateId}`;
    const [action, member] =
      phase === 'request'
        ? (['sanitizeUserPrompt', 'user_prompt_data'] as const)
        : (['sanitizeModelResponse', 'model_response_data'] as const);
    return hostedGuard(
      {
        kind: 'googleModelArmor',
        origin,
        authorize: async () => ({ authorization: `Bearer ${await tokens.value()}` }),
        async check(ask, texts) {
          const text = texts.map(({ content }) => content).join('\n');
          const { sanitizationResult } = await ask(`${template}:${action}`, { [member]: { text } }, answer);
          const { filterMatchState, invocationResult = 'SUCCESS' } = sanitizationResult;
          if (filterMatchState === 'MATCH_FOUND') return { kind: 'reject', rejection };
          // `PARTIAL` and `FAILURE`: filters were skipped, such as for texts that are too long.
          if (invocationResult !== 'SUCCESS')
            throw new GuardrailError('the service has not run all filters of the template');
          return { kind: 'pass' };
        },
      },
      item,
      context,
    );
  },
});
