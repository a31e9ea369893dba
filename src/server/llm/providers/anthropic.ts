import { defineProvider } from './provider.ts';

/** Keys of Claude subscriptions are OAuth tokens (`sk-ant-oat01-…`), which the API accepts as bearer tokens only. */
const OAUTH_TOKEN = 'sk-ant-oat';

/** The Anthropic API. */
export const anthropic = defineProvider({
  key: 'anthropic',
  aliases: [],
  telemetryName: 'anthropic',
  hasPromptCaching: true,
  baseUrl: 'https://api.anthropic.com/v1',
  formats: [{ type: 'messages' }, { type: 'anthropicTokenCount' }],
  keyHeader: (apiKey) =>
    apiKey.startsWith(OAUTH_TOKEN) ? ['authorization', `Bearer ${apiKey}`] : ['x-api-key', apiKey],
  // Required by every call (API reference, "Versions"). Official clients send it.
  headers: { 'anthropic-version': '2023-06-01' },
});
