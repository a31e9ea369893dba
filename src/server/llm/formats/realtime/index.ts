import { defineFormat } from '../format.ts';
import { openAiApi } from '../openai-api.ts';

/** Sessions of OpenAI's Realtime API over WebSocket, which are no calls: `llm/realtime/` opens and relays them. */
export const realtime = defineFormat({
  ...openAiApi,
  key: 'realtime',
  paths: [],
  routeType: 'Realtime',
  isRoutable: true,
  operation: 'other',
  hasNoText: true,
});
