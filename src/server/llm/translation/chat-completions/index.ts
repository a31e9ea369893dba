import type { ChatFormat } from '../chat-format.ts';
import { readError, writeError } from './error.ts';
import { eventReader, eventWriter } from './events.ts';
import { readRequest, writeRequest } from './request.ts';
import { readResponse, writeResponse } from './response.ts';

/** The Chat Completions API of OpenAI and compatible servers. */
export const chatCompletions: ChatFormat = {
  key: 'completions',
  path: () => '/chat/completions',
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  readError,
  writeError,
  eventReader,
  eventWriter,
};
