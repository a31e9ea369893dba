import type { ProviderChatFormat } from '../../chat/chat-format.ts';
import { eventStream } from './event-stream.ts';
import { eventReader } from './events.ts';
import { readError, readResponse } from './response.ts';
import { writeRequest } from './write-request.ts';

/** `Converse` and `ConverseStream` of Amazon Bedrock, as a format of providers. */
export const converse: ProviderChatFormat = {
  key: 'converse',
  path: ({ model, stream }) => `/model/${encodeURIComponent(model)}/converse${stream ? '-stream' : ''}`,
  writeRequest,
  readResponse,
  readError,
  framing: eventStream,
  eventReader,
};
