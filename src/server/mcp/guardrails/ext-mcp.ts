import type { ServiceDescriptor } from '../../transport/services/grpc.ts';
import { field, nested, protobufStruct } from '../../transport/services/protobuf-struct.ts';

/**
 * The gRPC service of upstream's `remote` processors, `agentgateway.dev.ext_mcp.ExtMcp`: names, types and numbers of its
 * messages, as far as they are used here.
 */

const repeated = { rule: 'repeated' };
const STRUCT = 'google.protobuf.Struct';

const outcome = { result: { oneof: ['pass', 'mutated', 'error'] } };
const outcomeFields = {
  pass: field('Pass', 1),
  mutated: field('bytes', 2),
  error: field('AuthorizationError', 3),
};

const messages = {
  McpRequest: {
    fields: {
      service_names: field('string', 1, repeated),
      method: field('string', 2),
      metadata_context: field(STRUCT, 3),
      // `optional` in proto3 is a oneof with one member.
      mcp_request: field('bytes', 4, { options: { proto3_optional: true } }),
      headers: field('McpHeader', 5, repeated),
    },
    oneofs: { _mcp_request: { oneof: ['mcp_request'] } },
  },
  McpResponse: {
    fields: {
      service_names: field('string', 1, repeated),
      method: field('string', 2),
      metadata_context: field(STRUCT, 3),
      mcp_response: field('bytes', 4),
    },
  },
  McpRequestResult: {
    oneofs: outcome,
    fields: { ...outcomeFields, header_mutation: field('HeaderMutation', 4), metadata: field(STRUCT, 5) },
  },
  McpResponseResult: { oneofs: outcome, fields: outcomeFields },
  HeaderMutation: { fields: { set: field('McpHeader', 1, repeated), remove: field('string', 2, repeated) } },
  McpHeader: { fields: { key: field('string', 1), value: field('bytes', 2) } },
  Pass: { fields: {} },
  AuthorizationError: {
    fields: {
      code: field('int32', 1),
      reason: field('string', 2),
      mcp_error: field('bytes', 3, { options: { proto3_optional: true } }),
    },
    oneofs: { _mcp_error: { oneof: ['mcp_error'] } },
  },
};

const method = (request: string, response: string): object => ({
  requestType: request,
  responseType: response,
});

const ExtMcp = {
  methods: {
    CheckRequest: method('McpRequest', 'McpRequestResult'),
    CheckResponse: method('McpResponse', 'McpResponseResult'),
  },
};

export const extMcp: ServiceDescriptor = {
  name: 'agentgateway.dev.ext_mcp.ExtMcp',
  descriptor: nested({
    agentgateway: nested({ dev: nested({ ext_mcp: nested({ ...messages, ExtMcp }) }) }),
    google: nested({ protobuf: nested(protobufStruct) }),
  }),
};
