import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { awsSigner } from '../credentials/cloud/aws-signature.ts';
import { requireInstalled } from '../credentials/cloud/cloud-package.ts';
import { defineBackend } from '../kernel/backend.ts';
import { backendKey } from '../kernel/request/shared-slots.ts';
import type { AwsScope } from '../kernel/upstreams.ts';
import { backendUpstream } from '../transport/backend-upstream.ts';
import { forwardTo, requestSigner, type SignRequest } from '../transport/host-backend.ts';
import { parseAddress } from '../transport/upstream/upstream.ts';

const ARN = /^arn:[\w-]+:bedrock-agentcore:([a-z0-9-]+):\d*:runtime\/\S+$/;
/** The signing name of the service. */
const SERVICE = 'bedrock-agentcore';
/** The variable of the AWS SDKs for the endpoint of this service ("Service-specific endpoints"). */
const ENDPOINT = 'AWS_ENDPOINT_URL_BEDROCK_AGENTCORE';

const agentCore = mapping('An agent on Amazon Bedrock AgentCore. Requests are signed.', {
  agentRuntimeArn: z
    .string()
    .regex(ARN, {
      error: 'expected an ARN such as `arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/agent-1`',
    })
    .describe('ARN of its runtime. It names the region.'),
  qualifier: nonEmpty.nullish().describe('Version or alias of the endpoint. Default: `DEFAULT`.'),
});

type AgentCore = z.output<typeof agentCore>;

const scopeOf = ({ agentRuntimeArn }: AgentCore): AwsScope => ({
  region: ARN.exec(agentRuntimeArn)?.[1] ?? '',
  service: SERVICE,
});

const hostOf = (config: AgentCore): string => `${SERVICE}.${scopeOf(config).region}.amazonaws.com`;

/** Amazon Bedrock AgentCore, "InvokeAgentRuntime". */
function pathOf({ agentRuntimeArn, qualifier }: AgentCore): string {
  const query = qualifier == null ? '' : `?qualifier=${encodeURIComponent(qualifier)}`;
  return `/runtimes/${encodeURIComponent(agentRuntimeArn)}/invocations${query}`;
}

/** Services of AWS that are not models. Every request invokes the agent, whatever its path. */
export const aws = defineBackend({
  key: 'aws',
  schema: mapping('A service of AWS.', { agentCore }),
  api: 'http',
  countsTokens: false,
  exposes: () => 'use the agent with your AWS credentials',
  connectsTo: ({ agentCore: config }) => ({
    kind: 'service',
    address: `${hostOf(config)}:443`,
    aws: scopeOf(config),
  }),
  describe: ({ agentCore: { agentRuntimeArn } }) => agentRuntimeArn,
  view: ({ agentCore: config }) => ({ address: `${hostOf(config)}:443` }),
  dump: ({ agentCore: config }, { name }) => [{ backend: { aws: { name, namespace: '', target: config } } }],
  probes: () => [],
  open({ agentCore: config }, context) {
    const parsed = parseAddress(context.env[ENDPOINT] || `https://${hostOf(config)}`, context);
    const isUsable =
      parsed !== undefined &&
      requireInstalled('@aws-sdk/credential-providers', context, 'without `backendAuth`, `aws`');
    if (!isUsable)
      return { handle: () => Promise.reject(new AppError('no_backend')), close: () => Promise.resolve() };
    const upstream = backendUpstream(parsed, {
      meter: context.settings.callMeter('Primary', 'Http'),
      log: context.log,
    });
    const scope = scopeOf(config);
    const signer = awsSigner(scope.region, scope.service);
    const sign: SignRequest = async ({ method, authority, path, headers, body }) => {
      const contentType = headers.get('content-type');
      const added = await signer.sign({ method, authority, path, contentType, body });
      for (const [field, value] of Object.entries(added)) headers.set(field, value);
    };
    const path = pathOf(config);
    return {
      handle(ctx) {
        // A key, such as the token of an identity provider that the agent knows, takes the place of the signature.
        const own = backendKey.get(ctx) === undefined ? sign : undefined;
        return forwardTo(ctx, upstream.for(ctx), {
          maxBody: context.settings.maxBufferSize,
          sign: requestSigner.get(ctx) ?? own,
          aws: scope,
          path,
          authority: upstream.own.authority,
        });
      },
      close: () => upstream.close(),
    };
  },
});
