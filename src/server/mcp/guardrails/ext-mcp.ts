import type { ServiceDescriptor } from '../../transport/grpc.ts';

/**
 * The gRPC service of upstream's `remote` processors, `agentgateway.dev.ext_mcp.ExtMcp`: names, types and numbers of its
 * messages, as far as they are used here.
 */

const field = (type: string, id: number, more: object = {}): object => ({ type, id, ...more });
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

/** `google/protobuf/struct.proto`. */
const protobuf = {
  Struct: { fields: { fields: { keyType: 'string', type: 'Value', id: 1 } } },
  Value: {
    oneofs: {
      kind: {
        oneof: ['nullValue', 'numberValue', 'stringValue', 'boolValue', 'structValue', 'listValue'],
      },
    },
    fields: {
      nullValue: field('int32', 1),
      numberValue: field('double', 2),
      stringValue: field('string', 3),
      boolValue: field('bool', 4),
      structValue: field('Struct', 5),
      listValue: field('ListValue', 6),
    },
  },
  ListValue: { fields: { values: field('Value', 1, repeated) } },
};

const nested = <T extends object>(inner: T): { readonly nested: T } => ({ nested: inner });

export const extMcp: ServiceDescriptor = {
  name: 'agentgateway.dev.ext_mcp.ExtMcp',
  descriptor: nested({
    agentgateway: nested({ dev: nested({ ext_mcp: nested({ ...messages, ExtMcp }) }) }),
    google: nested({ protobuf: nested(protobuf) }),
  }),
};

/** A JSON value as a `google.protobuf.Value`. */
export function toValue(value: unknown): object {
  if (value === null || value === undefined) return { nullValue: 0 };
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') return { numberValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (value instanceof Uint8Array) return { stringValue: Buffer.from(value).toString('base64') };
  if (Array.isArray(value)) return { listValue: { values: value.map(toValue) } };
  return { structValue: toStruct(value as object) };
}

/** An object as a `google.protobuf.Struct`. */
export function toStruct(value: object): object {
  return { fields: Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toValue(member)])) };
}

/** A decoded `google.protobuf.Struct`. */
export interface Struct {
  readonly fields?: Readonly<Record<string, Value>>;
}

interface Value {
  readonly kind?: string;
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: Struct;
  readonly listValue?: { readonly values?: readonly Value[] };
}

/** The object that a decoded `google.protobuf.Struct` contains. */
export function fromStruct({ fields = {} }: Struct): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, fromValue(value)]));
}

function fromValue(value: Value): unknown {
  if (value.kind === 'structValue') return fromStruct(value.structValue ?? {});
  if (value.kind === 'listValue') return (value.listValue?.values ?? []).map(fromValue);
  return value.stringValue ?? value.numberValue ?? value.boolValue ?? null;
}
