import { type ChatFormat, Untranslatable } from '../chat-format.ts';
import { eventStream } from './event-stream.ts';
import { eventReader } from './events.ts';
import { readError, readResponse } from './response.ts';
import { writeRequest } from './write-request.ts';

/** `Converse` and `ConverseStream` of Amazon Bedrock: a format of providers, not of clients. */
export const converse: ChatFormat = {
  key: 'converse',
  path: ({ model, stream }) => `/model/${encodeURIComponent(model)}/converse${stream ? '-stream' : ''}`,
  readRequest: notForClients,
  writeRequest,
  readResponse,
  writeResponse: notForClients,
  readError,
  writeError: notForClients,
  framing: eventStream,
  eventReader,
  eventWriter: notForClients,
};

function notForClients(): never {
  throw new Untranslatable('calls of Converse');
}
