import { elementsOf } from '../../../core/foreign.ts';
import { hasErrorObject } from '../chat/provider-error.ts';
import type { ClientError, WireFormat } from './format.ts';
import { googleStatus } from './generate-content/error.ts';

/** What the formats of the Gemini API have in common. */
export const geminiApi: Pick<WireFormat, 'wrapsRejections' | 'isError' | 'errorBody' | 'errorEvent'> = {
  wrapsRejections: true,
  // A stream that is not server-sent events is a list, also of an error.
  isError: (body) => hasErrorObject(Array.isArray(body) ? elementsOf(body)[0] : body),
  errorBody: googleError,
  errorEvent: (error) => `data: ${JSON.stringify(googleError(error))}\n\n`,
};

function googleError({ status, message }: ClientError): object {
  return { error: { code: status, message, status: googleStatus(status) } };
}
