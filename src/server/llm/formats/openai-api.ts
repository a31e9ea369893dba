import { hasErrorObject } from '../chat/provider-error.ts';
import { membersOf } from '../json-members.ts';
import { parseUsage } from '../usage.ts';
import type { ClientError, WireFormat } from './format.ts';

/** What the formats of the OpenAI API have in common. It also reads calls of unknown format. */
export const openAiApi: Pick<
  WireFormat,
  'report' | 'usage' | 'output' | 'isError' | 'errorBody' | 'errorEvent'
> = {
  // Events of `/v1/responses` contain the response.
  report: (value) => membersOf(value['response']) ?? value,
  usage: parseUsage,
  output({ choices, output, delta }) {
    return typeof delta === 'string' ? delta : (choices ?? output);
  },
  isError: (body) => hasErrorObject(body),
  errorBody: openAiError,
  errorEvent: (error) => `data: ${JSON.stringify(openAiError(error))}\n\n`,
};

function openAiError({ message, type, code }: ClientError): object {
  return { error: { message, type, code } };
}
