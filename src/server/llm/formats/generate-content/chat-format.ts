import type { ChatFormat } from '../../chat/chat-format.ts';
import { modelResource } from '../model-resource.ts';
import { readError, writeError } from './error.ts';
import { eventReader, eventWriter } from './events.ts';
import { memberNames } from './member-names.ts';
import { readRequest } from './read-request.ts';
import { readResponse, writeResponse } from './response.ts';
import { writeRequest } from './write-request.ts';

/** `generateContent` of the Gemini API and of Vertex AI. */
export const generateContent: ChatFormat = {
  key: 'generateContent',
  path: ({ model, stream }) =>
    `/${modelResource(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  memberNames,
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  readError,
  writeError,
  eventReader,
  eventWriter,
};
