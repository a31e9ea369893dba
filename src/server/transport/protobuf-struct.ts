// Descriptors of protobuf.js in JSON, and `google.protobuf.Struct`, which gRPC services of several policies use.

/** A field of a message: its type and number. */
export const field = (type: string, id: number, more: object = {}): object => ({ type, id, ...more });

/** A namespace. */
export const nested = <T extends object>(inner: T): { readonly nested: T } => ({ nested: inner });

/** `google/protobuf/struct.proto`. */
const repeated = { rule: 'repeated' };

export const protobufStruct = {
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
