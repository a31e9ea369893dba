import type { ChatFormat } from '../../chat/chat-format.ts';
import { readProviderError } from '../../chat/provider-error.ts';
import { writeOpenAiError } from '../openai-error.ts';
import { memberNames } from './member-names.ts';
import { eventReader } from './read-events.ts';
import { readRequest } from './read-request.ts';
import { readResponse } from './read-response.ts';
import { eventWriter } from './write-events.ts';
import { writeRequest } from './write-request.ts';
import { writeResponse } from './write-response.ts';

/** The Responses API of OpenAI. */
export const responses: ChatFormat = {
  key: 'responses',
  path: () => '/responses',
  memberNames,
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  readError: readProviderError,
  writeError: writeOpenAiError,
  eventReader,
  eventWriter,
};
