import { z } from 'zod';
import { choice, mapping } from '../../../core/schema/mapping.ts';
import type { ModeOverride } from '../envoy/external-processor.ts';

const BODY_MODES = ['none', 'buffered', 'bufferedPartial', 'fullDuplexStreamed'] as const;

export type BodyMode = (typeof BODY_MODES)[number];

const bodyMode = (message: string) =>
  choice(
    `How the body of the ${message} is sent: not at all; whole, up to \`frontendPolicies.http.maxBufferSize\`, beyond which the ${message} is rejected; its beginning, up to that size; or in pieces as they arrive, which the service returns changed or not.`,
    BODY_MODES,
    'fullDuplexStreamed',
  );

const sendMode = (what: string) => choice(`Whether ${what} sent.`, ['send', 'skip'], 'send');

/** `processingOptions`. */
export const processingOptionsSchema = z.lazy(() =>
  mapping('Which parts of requests and responses are sent to the service.', {
    requestBodyMode: bodyMode('request'),
    responseBodyMode: bodyMode('response'),
    requestHeaderMode: sendMode('headers of requests are'),
    responseHeaderMode: sendMode('headers of responses are'),
    requestTrailerMode: sendMode('trailers of requests are').describe(
      'For compatibility: the gateway passes no trailers on, so it has none to send.',
    ),
    responseTrailerMode: sendMode('trailers of responses are').describe('For compatibility, likewise.'),
    allowModeOverride: z
      .boolean()
      .default(false)
      .describe(
        'Whether the service can change these modes for a request (`mode_override`), except a `fullDuplexStreamed` one.',
      ),
  }),
);

export type ProcessingOptions = z.output<typeof processingOptionsSchema>;

/** `BodySendMode`; 1 is STREAMED, which upstream does not have either. */
const NUMBERS: Readonly<Record<BodyMode, number>> = {
  none: 0,
  buffered: 2,
  bufferedPartial: 3,
  fullDuplexStreamed: 4,
};

/** `ProtocolConfiguration`. */
export const protocolConfig = ({ requestBodyMode, responseBodyMode }: ProcessingOptions): object => ({
  request_body_mode: NUMBERS[requestBodyMode],
  response_body_mode: NUMBERS[responseBodyMode],
});

/** The options after a service has changed them: as upstream, not a body that is streamed already. */
export function overridden(
  options: ProcessingOptions,
  { responseHeaders, requestBody, responseBody }: ModeOverride,
): ProcessingOptions {
  if (!options.allowModeOverride) return options;
  const body = (current: BodyMode, number: number): BodyMode =>
    current === 'fullDuplexStreamed'
      ? current
      : (BODY_MODES.find((mode) => NUMBERS[mode] === number) ?? current);
  return {
    ...options,
    requestBodyMode: body(options.requestBodyMode, requestBody),
    responseBodyMode: body(options.responseBodyMode, responseBody),
    responseHeaderMode:
      responseHeaders === 1 ? 'send' : responseHeaders === 2 ? 'skip' : options.responseHeaderMode,
  };
}
