import { defineProvider } from './provider.ts';

/** Any server with the OpenAI API. */
export const oaiCompat = defineProvider({
  key: 'oaiCompat',
  aliases: ['openAI'],
  // Dashboards and catalogs know it under this name.
  telemetryName: 'openai',
  baseUrl: 'https://api.openai.com/v1',
});
