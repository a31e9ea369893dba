import { membersOf } from '../../../core/foreign.ts';
import { awsSigner } from '../../credentials/cloud/aws-signature.ts';
import { requireInstalled } from '../../credentials/cloud/cloud-package.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { parseExactly } from '../chat/exact-json.ts';
import { type Connection, type ConnectOptions, defineProvider, type OutgoingRequest } from './provider.ts';

/** The signing name of Bedrock's runtime. */
const SERVICE = 'bedrock';

/** Amazon Bedrock: chats by its Converse API, embeddings by InvokeModel. Requests are signed, unless there is an API key of Bedrock. */
export const bedrock = defineProvider({
  key: 'bedrock',
  aliases: [],
  telemetryName: 'aws.bedrock',
  baseUrl: undefined,
  formats: [
    { type: 'titanEmbeddings', supports: (model) => /(?:^|[./])amazon\.titan-embed-text/.test(model) },
    { type: 'cohereEmbeddings', supports: (model) => /(?:^|[./])cohere\.embed-/.test(model) },
    { type: 'converse' },
  ],
  hasAmbientCredentials: true,
  params: ['awsRegion'],
  hasPromptCaching: true,
  connect({ apiKey, awsRegion }, context, options) {
    const region = awsRegion ?? context.env['AWS_REGION'] ?? context.env['AWS_DEFAULT_REGION'];
    if (region === undefined || region === '') {
      context.report({
        code: 'AGW0103',
        message: 'provider `bedrock` needs `awsRegion`',
        help: 'set `awsRegion`, or the environment variable AWS_REGION, to a region such as `us-east-1`',
      });
      return undefined;
    }
    const isAuthorized = apiKey !== undefined || options.hasAuth === true;
    const credentials = isAuthorized ? {} : credentialsOf(region, context);
    if (credentials === undefined) return undefined;
    const { prepare, ...others } = credentials;
    const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
    return {
      ...others,
      aws: { region, service: SERVICE },
      baseUrl: `https://bedrock-runtime.${region}.${domain}`,
      prepare(request, signal) {
        // Before the request is signed.
        changeBody(request, options);
        return request.isAuthorized === true ? undefined : prepare?.(request, signal);
      },
    };
  },
});

function changeBody(request: OutgoingRequest, { guardrail }: ConnectOptions): void {
  const { format, body } = request;
  if (guardrail === undefined || format !== 'converse' || typeof body !== 'string') return;
  const { identifier: guardrailIdentifier, version: guardrailVersion } = guardrail;
  const guardrailConfig = { guardrailIdentifier, guardrailVersion };
  request.body = JSON.stringify({ ...membersOf(parseExactly(body)), guardrailConfig });
}

/** How requests without an `apiKey` are authorized. Undefined: a problem was reported. */
function credentialsOf(region: string, context: CompileContext): Connection | undefined {
  // The variable that the AWS SDKs read (Bedrock user guide, "API keys").
  const token = context.env['AWS_BEARER_TOKEN_BEDROCK'];
  if (token !== undefined && token !== '')
    return {
      hasCredentials: true,
      prepare: ({ headers }) => headers.set('authorization', `Bearer ${token}`),
    };
  if (!requireInstalled('@aws-sdk/credential-providers', context)) return undefined;
  const signer = awsSigner(region, SERVICE);
  return {
    hasCredentials: true,
    async prepare({ method, authority, path, headers, body }) {
      const contentType = headers.get('content-type');
      const added = await signer.sign({ method, authority, path, contentType, body });
      for (const [name, value] of Object.entries(added)) headers.set(name, value);
    },
  };
}
