import type { ChatFormat } from '../../chat/chat-format.ts';
import { readProviderError } from '../../chat/provider-error.ts';
import { writeError } from './error.ts';
import { memberNames } from './member-names.ts';
import { eventReader } from './read-events.ts';
import { readRequest } from './read-request.ts';
import { readResponse } from './read-response.ts';
import { eventWriter } from './write-events.ts';
import { writeRequest } from './write-request.ts';
import { writeResponse } from './write-response.ts';

/** The Messages API of Anthropic. */
export const messages: ChatFormat = {
  key: 'messages',
  path: () => '/messages',
  // API reference, "Versions". Compatible servers ignore it.
  headers: { 'anthropic-version': '2023-06-01' },
  memberNames,
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  readError: readProviderError,
  writeError,
  eventReader,
  eventWriter,
};
