import { isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import type { ServiceDescriptor } from '../../transport/services/grpc.ts';
import { field, fromStruct, nested } from '../../transport/services/protobuf-struct.ts';
import { google, type HeaderValueOption, headerOptionsIn, repeatedIn, sharedMessages } from './messages.ts';

const repeated = { rule: 'repeated' };
const map = (type: string, id: number): object => ({ keyType: 'string', type, id });
const STRUCT = 'google.protobuf.Struct';

/** `envoy.service.auth.v3.Authorization` (external_auth.proto, attribute_context.proto), as far as it is used here. */
const messages = {
  ...sharedMessages,
  CheckRequest: { fields: { attributes: field('AttributeContext', 1) } },
  AttributeContext: {
    fields: {
      source: field('Peer', 1),
      destination: field('Peer', 2),
      request: field('Request', 4),
      context_extensions: map('string', 10),
      metadata_context: field('Metadata', 11),
    },
  },
  Peer: { fields: { address: field('Address', 1), principal: field('string', 4) } },
  Address: { fields: { socket_address: field('SocketAddress', 1) } },
  SocketAddress: {
    fields: { protocol: field('int32', 1), address: field('string', 2), port_value: field('uint32', 3) },
  },
  Request: { fields: { time: field('google.protobuf.Timestamp', 1), http: field('HttpRequest', 2) } },
  HttpRequest: {
    fields: {
      id: field('string', 1),
      method: field('string', 2),
      headers: map('string', 3),
      path: field('string', 4),
      host: field('string', 5),
      scheme: field('string', 6),
      size: field('int64', 9),
      protocol: field('string', 10),
      body: field('string', 11),
      raw_body: field('bytes', 12),
    },
  },
  Metadata: { fields: { filter_metadata: map(STRUCT, 1) } },
  CheckResponse: {
    oneofs: { http_response: { oneof: ['denied_response', 'ok_response'] } },
    fields: {
      status: field('Status', 1),
      denied_response: field('DeniedHttpResponse', 2),
      ok_response: field('OkHttpResponse', 3),
      dynamic_metadata: field(STRUCT, 4),
    },
  },
  Status: { fields: { code: field('int32', 1), message: field('string', 2) } },
  HttpStatus: { fields: { code: field('int32', 1) } },
  DeniedHttpResponse: {
    fields: {
      status: field('HttpStatus', 1),
      headers: field('HeaderValueOption', 2, repeated),
      body: field('string', 3),
    },
  },
  OkHttpResponse: {
    fields: {
      headers: field('HeaderValueOption', 2, repeated),
      headers_to_remove: field('string', 5, repeated),
      response_headers_to_add: field('HeaderValueOption', 6, repeated),
      query_parameters_to_set: field('QueryParameter', 7, repeated),
      query_parameters_to_remove: field('string', 8, repeated),
    },
  },
  QueryParameter: { fields: { key: field('string', 1), value: field('string', 2) } },
};

const Authorization = { methods: { Check: { requestType: 'CheckRequest', responseType: 'CheckResponse' } } };

export const authorizationService: ServiceDescriptor = {
  name: 'envoy.service.auth.v3.Authorization',
  descriptor: nested({
    envoy: nested({ service: nested({ auth: nested({ v3: nested({ ...messages, Authorization }) }) }) }),
    google,
  }),
};

/** `CheckResponse`. */
export interface CheckAnswer {
  /** 0 allows the request; that of a missing status, too. */
  readonly code: number;
  readonly denied:
    | {
        readonly status: number | undefined;
        readonly headers: readonly HeaderValueOption[];
        readonly body: string;
      }
    | undefined;
  readonly ok: OkAnswer | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface OkAnswer {
  readonly headers: readonly HeaderValueOption[];
  readonly headersToRemove: readonly string[];
  readonly responseHeaders: readonly HeaderValueOption[];
  readonly parametersToSet: readonly { readonly key: string; readonly value: string }[];
  readonly parametersToRemove: readonly string[];
}

/** Reads what the gRPC package has decoded. Throws for more changes than a message has headers, and for deep nesting. */
export function checkAnswerIn(value: unknown): CheckAnswer {
  const { status, denied_response: denied, ok_response: ok, dynamic_metadata: metadata } = membersOf(value);
  const { code } = membersOf(status);
  return {
    code: typeof code === 'number' ? code : 0,
    denied: isRecord(denied) ? deniedIn(denied) : undefined,
    ok: isRecord(ok) ? okIn(ok) : undefined,
    metadata: fromStruct(metadata),
  };
}

function deniedIn(denied: Readonly<Record<string, unknown>>): NonNullable<CheckAnswer['denied']> {
  const { code } = membersOf(denied['status']);
  return {
    status: typeof code === 'number' ? code : undefined,
    headers: headerOptionsIn(denied['headers']),
    body: textIn(denied['body']),
  };
}

function okIn(ok: Readonly<Record<string, unknown>>): OkAnswer {
  return {
    headers: headerOptionsIn(ok['headers']),
    headersToRemove: repeatedIn(ok['headers_to_remove']).map(textIn),
    responseHeaders: headerOptionsIn(ok['response_headers_to_add']),
    parametersToSet: repeatedIn(ok['query_parameters_to_set']).map((one) => {
      const { key, value } = membersOf(one);
      return { key: textIn(key), value: textIn(value) };
    }),
    parametersToRemove: repeatedIn(ok['query_parameters_to_remove']).map(textIn),
  };
}
