import type { ChatFormat } from '../chat-format.ts';
import { readError, writeError } from './error.ts';
import { eventReader, eventWriter } from './events.ts';
import { readRequest, writeRequest } from './request.ts';
import { readResponse, writeResponse } from './response.ts';

/** The Messages API of Anthropic. */
export const messages: ChatFormat = {
  key: 'messages',
  path: () => '/messages',
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  readError,
  writeError,
  eventReader,
  eventWriter,
};
