import { requireInstalled } from '../../credentials/cloud/cloud-package.ts';
import { entraTokens } from '../../credentials/cloud/entra-token.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { messages } from '../formats/messages/index.ts';
import { openAiOwnFormats } from './openai-compatible.ts';
import type { ProviderParams } from './params.ts';
import { type Connection, defineProvider, type PathInput, type ProviderFormat } from './provider.ts';

/** Azure OpenAI and Azure AI Foundry. Without a key, calls carry a token of Microsoft Entra ID. */
export const azure = defineProvider({
  key: 'azure',
  aliases: [],
  telemetryName: 'azure',
  hasPromptCaching: true,
  baseUrl: undefined,
  formats: [],
  hasAmbientCredentials: true,
  params: ['azureResourceName', 'azureResourceType', 'azureApiVersion', 'azureProjectName'],
  keyHeader: (apiKey) => ['api-key', apiKey],
  // For Claude models; the other APIs ignore it.
  headers: messages.chat.headers,
  connect(params, context, options) {
    const { apiKey, azureResourceName: name, azureResourceType: type = 'openAI' } = params;
    if (params.baseUrl === undefined && name === undefined) {
      context.report({
        code: 'AGW0103',
        message: 'provider `azure` needs `azureResourceName` or `baseUrl`',
        help: 'set `azureResourceName` to the first part of the host name, such as `my-resource`',
      });
      return undefined;
    }
    const isFoundry = type !== 'openAI';
    reportUnread(isFoundry ? 'azureApiVersion' : 'azureProjectName', params, context);
    const isAuthorized = apiKey !== undefined || options.hasAuth === true;
    const authorization = isAuthorized ? {} : entraAuthorization(isFoundry, context);
    if (authorization === undefined) return undefined;
    const host = `${name}.${isFoundry ? 'services.ai' : 'openai'}.azure.com`;
    return {
      ...(name === undefined
        ? {}
        : { baseUrl: `https://${host}${isFoundry ? foundryPath(params) : openAiPath(params)}` }),
      formats: isFoundry ? FOUNDRY : resourceFormats(params),
      ...authorization,
    };
  },
});

/** A setting of the other type of resource. */
function reportUnread(key: keyof ProviderParams, params: ProviderParams, context: CompileContext): void {
  if (params[key] === undefined) return;
  const { azureResourceType: type = 'openAI' } = params;
  context.at(key).report({
    code: 'AGW0105',
    severity: 'warning',
    message: `\`${key}\` has no effect for the resource type \`${type}\``,
    help: 'remove it, or set `azureResourceType`',
    atKey: true,
  });
}

const foundryPath = ({ azureProjectName, azureResourceName }: ProviderParams): string =>
  `/api/projects/${azureProjectName ?? azureResourceName}/openai/v1`;

/** Versions with a date have a path for each deployment; later ones have those of the OpenAI API. */
const isDated = ({ azureApiVersion = 'v1' }: ProviderParams): boolean => /^\d/.test(azureApiVersion);

const openAiPath = (params: ProviderParams): string => (isDated(params) ? '/openai' : '/openai/v1');

/** Calls of an Azure OpenAI resource (Azure OpenAI, "REST API reference"). */
function resourceFormats(params: ProviderParams): readonly ProviderFormat[] {
  const { azureApiVersion: version = 'v1' } = params;
  if (version === 'v1') return openAiOwnFormats;
  // Sessions of other versions have parameters of their own.
  return openAiOwnFormats
    .filter(({ type }) => type !== 'realtime')
    .map((format) => {
      const { type } = format;
      // The Responses API has no deployment in its path, whatever the version.
      const hasDeployment = isDated(params) && type !== 'responses';
      const deployment = ({ model }: PathInput): string =>
        hasDeployment ? `/deployments/${encodeURIComponent(model)}` : '';
      return {
        ...format,
        path: (call: PathInput) =>
          `${call.basePath}${deployment(call)}${call.path.slice(call.basePath.length)}?api-version=${version}`,
      };
    });
}

/** Claude models of a Foundry resource have the Anthropic API only, the others the OpenAI API. */
const isClaude = (model: string): boolean => model.toLowerCase().startsWith('claude');
const isOther = (model: string): boolean => !isClaude(model);

const FOUNDRY: readonly ProviderFormat[] = [
  { type: 'messages', path: '/anthropic/v1/messages', supports: isClaude },
  { type: 'anthropicTokenCount', path: '/anthropic/v1/messages/count_tokens', supports: isClaude },
  ...openAiOwnFormats.map((format) => ({
    ...format,
    supports: isOther,
  })),
];

/** Scopes of the two kinds of endpoints (Azure, "Configure keyless authentication with Microsoft Entra ID"). */
const SCOPE = 'https://cognitiveservices.azure.com/.default';
const FOUNDRY_SCOPE = 'https://ai.azure.com/.default';

function entraAuthorization(isFoundry: boolean, context: CompileContext): Connection | undefined {
  if (!requireInstalled('@azure/identity', context)) return undefined;
  const tokens = entraTokens(isFoundry ? FOUNDRY_SCOPE : SCOPE);
  return {
    hasCredentials: true,
    prepare: async ({ headers, isAuthorized = false }) => {
      if (!isAuthorized) headers.set('authorization', `Bearer ${await tokens.value()}`);
    },
  };
}
