import type { ChatFormat } from '../chat-format.ts';
import { readError, writeError } from './error.ts';
import { eventReader, eventWriter } from './events.ts';
import { readRequest, writeRequest } from './request.ts';
import { readResponse, writeResponse } from './response.ts';

/** The Responses API of OpenAI. */
export const responses: ChatFormat = {
  key: 'responses',
  path: () => '/responses',
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  readError,
  writeError,
  eventReader,
  eventWriter,
};
