import { elementsOf, membersOf } from '../../../core/foreign.ts';
import { requireInstalled } from '../../credentials/cloud/cloud-package.ts';
import { googleTokens } from '../../credentials/cloud/google-token.ts';
import type { CallTarget } from '../chat/chat-format.ts';
import { generateContent } from '../formats/generate-content/index.ts';
import { withoutAccounting } from '../formats/messages/accounting.ts';
import { JsonBody } from '../request/json-body.ts';
import { defineProvider, type OutgoingRequest, type PathInput, type ProviderFormat } from './provider.ts';

/** Vertex AI of Google Cloud: Gemini, Claude, and models with an OpenAI-compatible API. */
export const vertex = defineProvider({
  key: 'vertex',
  aliases: [],
  telemetryName: 'gcp.vertex_ai',
  hasPromptCaching: true,
  baseUrl: undefined,
  formats: [],
  hasAmbientCredentials: true,
  params: ['vertexRegion', 'vertexProject'],
  connect(params, context, options) {
    const { apiKey, vertexProject: project, vertexRegion: region = 'global' } = params;
    if (project === undefined) {
      context.report({
        code: 'AGW0103',
        message: 'provider `vertex` needs `vertexProject`',
        help: 'set `vertexProject` to the id of the Google Cloud project',
      });
      return undefined;
    }
    const isAuthorized = apiKey !== undefined || options.hasAuth === true;
    if (!isAuthorized && !requireInstalled('google-auth-library', context)) return undefined;
    const tokens = isAuthorized ? undefined : googleTokens({ project });
    return {
      baseUrl: `https://${hostOf(region)}/v1/projects/${project}/locations/${region}`,
      formats: FORMATS,
      hasCredentials: !options.hasAuth,
      async prepare(request) {
        if (tokens !== undefined && request.isAuthorized !== true)
          request.headers.set('authorization', `Bearer ${await tokens.value()}`);
        await prepareClaude(request);
      },
    };
  },
});

/** `us` and `eu` are several regions together, whose data stays there. */
function hostOf(region: string): string {
  if (region === 'global') return 'aiplatform.googleapis.com';
  if (region === 'us' || region === 'eu') return `aiplatform.${region}.rep.googleapis.com`;
  return `${region}-aiplatform.googleapis.com`;
}

const isClaude = (model: string): boolean => model.startsWith('claude');
const isGemini = (model: string): boolean => /^(?:google\/)?gemini/.test(model);
/** Embedding models that have `predict`. */
const isEmbedding = (model: string): boolean =>
  /^(?:google\/)?(?:gemini-embedding-001|text-(?:multilingual-)?embedding-\d+)$/.test(model);
const isOther = (model: string): boolean => !isClaude(model) && !isGemini(model);

const publisher = ({ basePath }: PathInput, name: string): string => `${basePath}/publishers/${name}`;

const withoutPublisher = ({ model }: PathInput): CallTarget => ({
  model: model.replace(/^google\//, ''),
  stream: false,
});

const FORMATS: readonly ProviderFormat[] = [
  {
    type: 'generateContent',
    supports: isGemini,
    path: (call) => publisher(call, 'google') + generateContent.chat.path(withoutPublisher(call)),
  },
  {
    type: 'geminiCountTokens',
    supports: isGemini,
    path: (call) =>
      publisher(call, 'google') +
      generateContent.chat.path(withoutPublisher(call)).replace(/:\w+$/, ':countTokens'),
  },
  { type: 'predict', supports: isEmbedding },
  {
    type: 'messages',
    supports: isClaude,
    path: (call) =>
      `${publisher(call, 'anthropic')}/models/${encodeURIComponent(call.model)}:${call.stream ? 'streamRawPredict' : 'rawPredict'}`,
  },
  {
    type: 'anthropicTokenCount',
    supports: isClaude,
    path: (call) => `${publisher(call, 'anthropic')}/models/count-tokens:rawPredict`,
  },
  {
    type: 'completions',
    supports: isOther,
    path: ({ basePath }) => `${basePath}/endpoints/openapi/chat/completions`,
  },
];

/**
 * Vertex AI has the version of the Messages API in the body, and the model of a message in the path only (Anthropic's
 * documentation, "Claude on Vertex AI"). Accounts are Google's there.
 */
async function prepareClaude(request: OutgoingRequest): Promise<void> {
  const { format, body } = request;
  if ((format !== 'messages' && format !== 'anthropicTokenCount') || body === null) return;
  request.headers.delete('anthropic-version');
  const changed = await JsonBody.parse(Buffer.from(body));
  changed.set('anthropic_version', 'vertex-2023-10-16');
  if (format === 'messages') changed.remove('model');
  const instructions = instructionsIn(changed.get('system'));
  if (instructions.length === 0) changed.remove('system');
  else changed.set('system', instructions);
  request.body = changed.encode();
}

function instructionsIn(system: unknown): string | unknown[] {
  if (typeof system === 'string') return withoutAccounting(system);
  return elementsOf(system).flatMap((block) => {
    const { text, ...others } = membersOf(block);
    if (typeof text !== 'string') return [block];
    const kept = withoutAccounting(text);
    return kept === '' && text !== '' ? [] : [{ ...others, text: kept }];
  });
}
