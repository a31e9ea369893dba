import { isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import type { ServiceDescriptor } from '../../transport/services/grpc.ts';
import { field, fromStruct, nested } from '../../transport/services/protobuf-struct.ts';
import { google, type HeaderValueOption, headerOptionsIn, repeatedIn, sharedMessages } from './messages.ts';

const repeated = { rule: 'repeated' };
const map = (type: string, id: number): object => ({ keyType: 'string', type, id });
const STRUCT = 'google.protobuf.Struct';

/** The parts of a message that requests and responses of the service are about. */
const MESSAGE_PARTS = [
  'request_headers',
  'response_headers',
  'request_body',
  'response_body',
  'request_trailers',
  'response_trailers',
];

/** `envoy.service.ext_proc.v3.ExternalProcessor` (external_processor.proto), as far as it is used here. */
const messages = {
  ...sharedMessages,
  ProcessingRequest: {
    oneofs: {
      request: {
        oneof: MESSAGE_PARTS,
      },
    },
    fields: {
      request_headers: field('HttpHeaders', 2),
      response_headers: field('HttpHeaders', 3),
      request_body: field('HttpBody', 4),
      response_body: field('HttpBody', 5),
      request_trailers: field('HttpTrailers', 6),
      response_trailers: field('HttpTrailers', 7),
      metadata_context: field('Metadata', 8),
      attributes: map(STRUCT, 9),
      protocol_config: field('ProtocolConfiguration', 11),
    },
  },
  ProtocolConfiguration: {
    fields: { request_body_mode: field('int32', 1), response_body_mode: field('int32', 2) },
  },
  Metadata: { fields: { filter_metadata: map(STRUCT, 1) } },
  HttpHeaders: { fields: { headers: field('HeaderMap', 1), end_of_stream: field('bool', 3) } },
  HttpBody: { fields: { body: field('bytes', 1), end_of_stream: field('bool', 2) } },
  HttpTrailers: { fields: { trailers: field('HeaderMap', 1) } },
  HeaderMap: { fields: { headers: field('HeaderValue', 1, repeated) } },
  ProcessingResponse: {
    oneofs: {
      response: {
        oneof: [...MESSAGE_PARTS, 'immediate_response'],
      },
    },
    fields: {
      request_headers: field('PartResponse', 1),
      response_headers: field('PartResponse', 2),
      request_body: field('PartResponse', 3),
      response_body: field('PartResponse', 4),
      request_trailers: field('TrailersResponse', 5),
      response_trailers: field('TrailersResponse', 6),
      immediate_response: field('ImmediateResponse', 7),
      dynamic_metadata: field(STRUCT, 8),
      mode_override: field('ProcessingMode', 9),
    },
  },
  /** `HeadersResponse` and `BodyResponse`, which are the same. */
  PartResponse: { fields: { response: field('CommonResponse', 1) } },
  TrailersResponse: { fields: { header_mutation: field('HeaderMutation', 1) } },
  CommonResponse: {
    fields: { header_mutation: field('HeaderMutation', 2), body_mutation: field('BodyMutation', 3) },
  },
  HeaderMutation: {
    fields: {
      set_headers: field('HeaderValueOption', 1, repeated),
      remove_headers: field('string', 2, repeated),
    },
  },
  BodyMutation: {
    oneofs: { mutation: { oneof: ['body', 'clear_body', 'streamed_response'] } },
    fields: {
      body: field('bytes', 1),
      clear_body: field('bool', 2),
      streamed_response: field('HttpBody', 3),
    },
  },
  ImmediateResponse: {
    fields: {
      status: field('HttpStatus', 1),
      headers: field('HeaderMutation', 2),
      // Formerly a string: services may send bytes that are not UTF-8.
      body: field('bytes', 3),
      details: field('string', 5),
    },
  },
  HttpStatus: { fields: { code: field('int32', 1) } },
  ProcessingMode: {
    fields: {
      response_header_mode: field('int32', 2),
      request_body_mode: field('int32', 3),
      response_body_mode: field('int32', 4),
    },
  },
};

const ExternalProcessor = {
  methods: {
    Process: {
      requestType: 'ProcessingRequest',
      requestStream: true,
      responseType: 'ProcessingResponse',
      responseStream: true,
    },
  },
};

export const externalProcessor: ServiceDescriptor = {
  name: 'envoy.service.ext_proc.v3.ExternalProcessor',
  descriptor: nested({
    envoy: nested({
      service: nested({ ext_proc: nested({ v3: nested({ ...messages, ExternalProcessor }) }) }),
    }),
    google,
  }),
};

/** `HeaderMutation`. */
export interface HeaderMutation {
  readonly set: readonly HeaderValueOption[];
  readonly remove: readonly string[];
}

/** `BodyMutation`: all of the body, which may be empty, or a piece of a stream. */
export type BodyMutation =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'piece'; readonly bytes: Buffer; readonly isLast: boolean };

/** `ImmediateResponse`. */
export interface ImmediateAnswer {
  readonly status: number | undefined;
  readonly headers: HeaderMutation;
  readonly body: Buffer;
  /** For logs. */
  readonly details: string;
}

/** Numbers of `ProcessingMode`; 0 means no change of header modes. */
export interface ModeOverride {
  readonly responseHeaders: number;
  readonly requestBody: number;
  readonly responseBody: number;
}

export type Direction = 'request' | 'response';

/** `ProcessingResponse`. */
export type ProcessingAnswer = {
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
} & (
  | { readonly kind: 'none' }
  | { readonly kind: 'immediate'; readonly immediate: ImmediateAnswer }
  | {
      readonly kind: 'headers' | 'body';
      readonly direction: Direction;
      readonly headers: HeaderMutation;
      readonly body: BodyMutation | undefined;
      readonly modes: ModeOverride | undefined;
    }
  | { readonly kind: 'trailers'; readonly direction: Direction }
);

const PARTS = {
  request_headers: ['request', 'headers'],
  response_headers: ['response', 'headers'],
  request_body: ['request', 'body'],
  response_body: ['response', 'body'],
} as const;

/** Reads what the gRPC package has decoded. Throws for more changes than a message has headers, and for deep nesting. */
export function processingAnswerIn(value: unknown): ProcessingAnswer {
  const answer = membersOf(value);
  const { response: name, dynamic_metadata: struct } = answer;
  const metadata = isRecord(struct) ? fromStruct(struct) : undefined;
  switch (name) {
    case 'request_headers':
    case 'response_headers':
    case 'request_body':
    case 'response_body': {
      const [direction, kind] = PARTS[name];
      const common = membersOf(membersOf(answer[name])['response']);
      const modes = answer['mode_override'];
      return {
        kind,
        direction,
        metadata,
        headers: headerMutationIn(common['header_mutation']),
        body: bodyMutationIn(common['body_mutation']),
        modes: isRecord(modes) ? modesIn(modes) : undefined,
      };
    }
    case 'request_trailers':
    case 'response_trailers':
      return { kind: 'trailers', direction: name === 'request_trailers' ? 'request' : 'response', metadata };
    case 'immediate_response':
      return { kind: 'immediate', metadata, immediate: immediateIn(answer[name]) };
    default:
      return { kind: 'none', metadata };
  }
}

function headerMutationIn(value: unknown): HeaderMutation {
  const { set_headers: set, remove_headers: remove } = membersOf(value);
  return { set: headerOptionsIn(set), remove: repeatedIn(remove).map(textIn) };
}

function bodyMutationIn(value: unknown): BodyMutation | undefined {
  const { mutation, body, streamed_response: piece } = membersOf(value);
  if (mutation === 'body') return { kind: 'whole', bytes: bytesIn(body) };
  if (mutation === 'clear_body') return { kind: 'whole', bytes: Buffer.alloc(0) };
  if (mutation !== 'streamed_response') return undefined;
  const { body: bytes, end_of_stream: isLast } = membersOf(piece);
  return { kind: 'piece', bytes: bytesIn(bytes), isLast: isLast === true };
}

const bytesIn = (value: unknown): Buffer => (Buffer.isBuffer(value) ? value : Buffer.alloc(0));

const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0);

function modesIn(modes: Readonly<Record<string, unknown>>): ModeOverride {
  return {
    responseHeaders: numberIn(modes['response_header_mode']),
    requestBody: numberIn(modes['request_body_mode']),
    responseBody: numberIn(modes['response_body_mode']),
  };
}

function immediateIn(value: unknown): ImmediateAnswer {
  const { status, headers, body, details } = membersOf(value);
  const { code } = membersOf(status);
  return {
    status: typeof code === 'number' ? code : undefined,
    headers: headerMutationIn(headers),
    body: bytesIn(body),
    details: textIn(details),
  };
}
