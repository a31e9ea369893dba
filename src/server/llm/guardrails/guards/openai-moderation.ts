import { z } from 'zod';
import { mapping, nonEmpty } from '../../../../core/schema/mapping.ts';
import { GuardrailError } from '../../../guardrails/outcome.ts';
import { readCredential } from '../../../transport/services/backend-credential.ts';
import { defineGuard } from '../guard.ts';
import { hostedGuard, keyPolicies, serviceUrl } from '../hosted-service.ts';

const schema = mapping('Rejects requests that the moderation API of OpenAI flags.', {
  model: nonEmpty.default('omni-moderation-latest').describe('Moderation model.'),
  baseUrl: serviceUrl.default('https://api.openai.com').describe('Server with the path `/v1/moderations`.'),
  policies: keyPolicies,
});

/** OpenAI's API reference, "Create moderation". */
const answer = z.object({ results: z.array(z.object({ flagged: z.boolean() })).min(1) });

export const openAIModeration = defineGuard({
  key: 'openAIModeration',
  schema,
  hasScope: false,
  hasRejection: true,
  compile({ model, baseUrl, policies }, item, context) {
    const key = readCredential(policies.backendAuth.key, context.at('policies', 'backendAuth', 'key'));
    if (key === undefined) return undefined;
    return hostedGuard(
      {
        kind: 'openAIModeration',
        origin: new URL(baseUrl).origin,
        authorize: () => ({ authorization: `Bearer ${key}` }),
        async check(ask, texts) {
          const input = texts.map(({ content }) => content);
          const { results } = await ask('/v1/moderations', { model, input }, answer);
          // Some servers check the first text only.
          if (results.length !== input.length)
            throw new GuardrailError('the response of the service has a different number of results');
          return results.some(({ flagged }) => flagged)
            ? { kind: 'reject', rejection: item.rejection }
            : { kind: 'pass' };
        },
      },
      item,
      context,
    );
  },
});
