import { z } from 'zod';
import { mapping } from '../../../../core/schema/mapping.ts';
import { awsSigner } from '../../../credentials/cloud/aws-signature.ts';
import { requireInstalled } from '../../../credentials/cloud/cloud-package.ts';
import { GuardrailError } from '../../../guardrails/outcome.ts';
import { defineGuard, type Verdict } from '../guard.ts';
import type { GuardedText } from '../guarded-text.ts';
import { hostedGuard, serviceUrl } from '../hosted-service.ts';
import type { Rejection } from '../rejection.ts';

const name = z.string().regex(/^[A-Za-z0-9:/._-]+$/, { error: 'expected an id or ARN' });

const schema = z.lazy(() =>
  mapping('Checks texts with a guardrail of Amazon Bedrock, which may mask or reject them.', {
    guardrailIdentifier: name.describe('Id or ARN of the guardrail.'),
    guardrailVersion: name.describe('Version of the guardrail, or `DRAFT`.'),
    region: z
      .string()
      .regex(/^[a-z0-9-]+$/, { error: 'expected a region such as `us-east-1`' })
      .describe('AWS region of the guardrail.'),
    baseUrl: serviceUrl
      .optional()
      .describe('Server to call instead of that of the region, such as a VPC endpoint.'),
    policies: mapping('`backendAuth: { aws: {} }`: the credentials of the AWS SDK, which is the default.', {
      backendAuth: mapping('How calls are signed.', {
        aws: mapping('Credentials of the AWS SDK. No settings.', {}),
      }).optional(),
    }).optional(),
  }),
);

/** Amazon Bedrock's API reference, "ApplyGuardrail". */
const answer = z.object({
  action: z.enum(['NONE', 'GUARDRAIL_INTERVENED']),
  outputs: z.array(z.object({ text: z.string() })).default([]),
  assessments: z.array(z.unknown()).default([]),
});

export const bedrockGuardrails = defineGuard({
  key: 'bedrockGuardrails',
  schema,
  hasScope: true,
  hasRejection: true,
  compile(config, item, context) {
    const { phase, rejection } = item;
    if (!requireInstalled('@aws-sdk/credential-providers', context, 'this guardrail')) return undefined;
    const { guardrailIdentifier, guardrailVersion, region } = config;
    const { origin } = new URL(config.baseUrl ?? `https://bedrock-runtime.${region}.amazonaws.com`);
    const signer = awsSigner(region, 'bedrock');
    const path = `/guardrail/${encodeURIComponent(guardrailIdentifier)}/version/${guardrailVersion}/apply`;
    const source = phase === 'request' ? 'INPUT' : 'OUTPUT';
    return hostedGuard(
      {
        kind: 'bedrockGuardrails',
        origin,
        authorize: (request) => signer.sign({ ...request, method: 'POST', contentType: 'application/json' }),
        async check(ask, texts) {
          const content = texts.map(({ content: text }) => ({ text: { text } }));
          return verdictOf(await ask(path, { source, content }, answer), texts, rejection);
        },
      },
      item,
      context,
    );
  },
});

/** A guardrail that intervened has blocked the texts, or returns them with sensitive information masked. */
function verdictOf(
  { action, outputs, assessments }: z.output<typeof answer>,
  texts: readonly GuardedText[],
  rejection: Rejection,
): Verdict {
  if (action === 'NONE') return { kind: 'pass' };
  if (hasBlocked(assessments) || outputs.length === 0) return { kind: 'reject', rejection };
  if (outputs.length !== texts.length)
    throw new GuardrailError('the response of the service has a different number of texts');
  return {
    kind: 'mask',
    texts: texts.map(({ role }, index) => ({ role, content: outputs[index]?.text ?? '' })),
  };
}

/** Whether any filter of the assessments, at whatever depth, has blocked. */
function hasBlocked(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return (value as { action?: unknown }).action === 'BLOCKED' || Object.values(value).some(hasBlocked);
}
