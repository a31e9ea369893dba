import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { textOrFile } from '../../transport/text-or-file.ts';

/**
 * Credentials in `baseUrl` are rejected, because they would not be sent: requests use its host and path, and `apiKey`.
 */
const hasUserinfo = (url: string): boolean => /^[a-z]+:\/\/[^/?#]*@/i.test(url);

/** Parts of host names and paths. */
const region = z.string().regex(/^[a-z0-9-]+$/, { error: 'expected a region such as `us-east-1`' });
const resource = z
  .string()
  .regex(/^[A-Za-z0-9:._-]+$/, { error: 'expected letters, digits and `-`, `.`, `_`, `:`' });

/** Azure OpenAI, "API version lifecycle": dated versions, of which some are previews, and those of the v1 API. */
const AZURE_VERSION = /^(?:v1|latest|preview|\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:-preview)?)$/;

const chats = (what: string, hint: string) =>
  z
    .enum(['pass', 'translate'])
    .optional()
    .describe(
      `${what}: \`pass\` leaves them as they are, \`translate\` makes chat completions of them. Default: as the provider is known to be; ${hint}.`,
    );

export const paramsSchema = mapping('Connection to the provider.', {
  apiKey: textOrFile
    .optional()
    .meta({ secret: true })
    .describe("API key for the provider, or `{ file: … }`. Default: the client's own key is forwarded."),
  model: nonEmpty
    .optional()
    .describe(
      'Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.',
    ),
  baseUrl: z
    .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
    .refine((url) => !hasUserinfo(url), {
      error: 'expected a URL without credentials: remove `user:password@`, and set `apiKey`',
    })
    .refine((url) => !/[?#]/.test(url), { error: 'expected a URL without a query or a fragment' })
    .optional()
    .describe(
      'URL of the API with its version, such as `http://127.0.0.1:8000/v1`: everything before `/chat/completions`, `/messages` or `/responses`. Default: that of the provider.',
    ),
  awsRegion: region.optional().describe('AWS region of the `bedrock` provider, such as `us-east-1`.'),
  vertexRegion: region
    .optional()
    .describe(
      'Location of the `vertex` provider, such as `europe-west1`, `us`, `eu` or `global`. Default: `global`.',
    ),
  vertexProject: resource.optional().describe('Google Cloud project of the `vertex` provider.'),
  azureResourceName: resource
    .optional()
    .describe('Resource of the `azure` provider: the first part of its host name.'),
  azureResourceType: z
    .enum(['openAI', 'foundry', 'aiServices'])
    .optional()
    .describe(
      'Type of the Azure resource. `openAI`: `NAME.openai.azure.com`. `foundry`, also called `aiServices`: `NAME.services.ai.azure.com`. Default: `openAI`.',
    ),
  azureApiVersion: z
    .string()
    .regex(AZURE_VERSION, {
      error: 'expected `v1`, `latest`, `preview` or a date such as `2024-10-21` or `2025-04-01-preview`',
    })
    .optional()
    .describe(
      'Version of the Azure OpenAI API: `v1`, `latest`, `preview` or a date such as `2024-10-21` or `2025-04-01-preview`, with which models are called by the name of their deployment. Default: `v1`.',
    ),
  responses: chats('Calls of the Responses API', 'some servers have none at all'),
  messages: chats("Calls of Anthropic's Messages API", 'vLLM, Ollama and LM Studio have one'),
  tokenize: z
    .boolean()
    .optional()
    .describe(
      'Deduct an estimate of the tokens of the request from limits of tokens before the call, and not only all tokens after it: calls at the same time cannot exceed a limit by their requests.',
    ),
  azureProjectName: resource
    .optional()
    .describe('Project of a `foundry` resource. Default: the name of the resource.'),
});

export type ProviderParams = z.output<typeof paramsSchema>;
