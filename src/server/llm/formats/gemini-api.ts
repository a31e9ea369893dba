import type { ClientError, WireFormat } from './format.ts';
import { googleStatus } from './generate-content/error.ts';

/** What the formats of the Gemini API have in common. */
export const geminiApi: Pick<WireFormat, 'wrapsRejections' | 'errorBody' | 'errorEvent'> = {
  wrapsRejections: true,
  errorBody: googleError,
  errorEvent: (error) => `data: ${JSON.stringify(googleError(error))}\n\n`,
};

function googleError({ status, message }: ClientError): object {
  return { error: { code: status, message, status: googleStatus(status) } };
}
