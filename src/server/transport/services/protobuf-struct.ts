import { elementsOf, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';

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
function toValue(value: unknown): object {
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

/**
 * The object that a decoded `google.protobuf.Struct` contains; empty for anything else. Throws for more than
 * `LIMITS.jsonDepth` levels: expressions and traces walk through it recursively.
 */
export function fromStruct(struct: unknown, depth = 0): Record<string, unknown> {
  if (depth > LIMITS.jsonDepth) throw new Error('the metadata is nested too deeply');
  const { fields } = membersOf(struct);
  return Object.fromEntries(
    Object.entries(membersOf(fields)).map(([key, value]) => [key, fromValue(value, depth)]),
  );
}

function fromValue(value: unknown, depth: number): unknown {
  const { kind, numberValue, stringValue, boolValue, structValue, listValue } = membersOf(value);
  if (kind === 'structValue') return fromStruct(structValue, depth + 1);
  if (kind !== 'listValue') return stringValue ?? numberValue ?? boolValue ?? null;
  if (depth > LIMITS.jsonDepth) throw new Error('the metadata is nested too deeply');
  return elementsOf(membersOf(listValue)['values']).map((item) => fromValue(item, depth + 1));
}
