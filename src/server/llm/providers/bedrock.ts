import { awsSigner } from '../cloud/aws-signature.ts';
import { requireInstalled } from '../cloud/cloud-package.ts';
import { defineProvider } from './provider.ts';

/** The signing name of Bedrock's runtime. */
const SERVICE = 'bedrock';

/** Amazon Bedrock, by its Converse API. Requests are signed, unless there is an API key of Bedrock. */
export const bedrock = defineProvider({
  key: 'bedrock',
  aliases: [],
  telemetryName: 'aws.bedrock',
  baseUrl: undefined,
  formats: [{ type: 'converse' }],
  hasAmbientCredentials: true,
  connect({ apiKey, awsRegion }, context) {
    const region = awsRegion ?? context.env['AWS_REGION'] ?? context.env['AWS_DEFAULT_REGION'];
    if (region === undefined || region === '') {
      context.report({
        code: 'AGW0103',
        message: 'provider `bedrock` needs `awsRegion`',
        help: 'set `awsRegion`, or the environment variable AWS_REGION, to a region such as `us-east-1`',
      });
      return undefined;
    }
    const baseUrl = `https://bedrock-runtime.${region}.${region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'}`;
    if (apiKey !== undefined) return { baseUrl };
    // The variable that the AWS SDKs read (Bedrock user guide, "API keys").
    const token = context.env['AWS_BEARER_TOKEN_BEDROCK'];
    if (token !== undefined && token !== '')
      return {
        baseUrl,
        hasCredentials: true,
        prepare: ({ headers }) => headers.set('authorization', `Bearer ${token}`),
      };
    if (!requireInstalled('@aws-sdk/credential-providers', context)) return undefined;
    const signer = awsSigner(region, SERVICE);
    return {
      baseUrl,
      hasCredentials: true,
      async prepare({ method, authority, path, headers, body }) {
        const contentType = headers.get('content-type');
        const added = await signer.sign({ method, authority, path, contentType, body });
        for (const [name, value] of Object.entries(added)) headers.set(name, value);
      },
    };
  },
});
