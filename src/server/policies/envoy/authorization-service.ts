import type { ServiceDescriptor } from '../../transport/grpc.ts';
import { field, nested, type Struct } from '../../transport/protobuf-struct.ts';
import { google, type HeaderValueOption, sharedMessages } from './messages.ts';

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

/** `CheckResponse`. A missing status allows the request, as status 0 does. */
export interface CheckAnswer {
  readonly status?: { readonly code: number } | null;
  readonly denied_response?: {
    readonly status?: { readonly code: number } | null;
    readonly headers: readonly HeaderValueOption[];
    readonly body: string;
  } | null;
  readonly ok_response?: {
    readonly headers: readonly HeaderValueOption[];
    readonly headers_to_remove: readonly string[];
    readonly response_headers_to_add: readonly HeaderValueOption[];
    readonly query_parameters_to_set: readonly { readonly key: string; readonly value: string }[];
    readonly query_parameters_to_remove: readonly string[];
  } | null;
  readonly dynamic_metadata?: Struct | null;
}
