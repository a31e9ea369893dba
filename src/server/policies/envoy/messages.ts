import { elementsOf, membersOf, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import { isHeaderValue, isSettableHeader } from '../../kernel/request/header-list.ts';
import { field, nested, protobufStruct } from '../../transport/services/protobuf-struct.ts';

/**
 * Messages that several of Envoy's services share, as far as they are used here. Their names do not travel, so they are
 * all in one package; fields have Envoy's numbers (envoy/config/core/v3/base.proto, google/protobuf/wrappers.proto).
 */
export const sharedMessages = {
  HeaderValue: {
    fields: { key: field('string', 1), value: field('string', 2), raw_value: field('bytes', 3) },
  },
  HeaderValueOption: {
    fields: {
      header: field('HeaderValue', 1),
      append: field('google.protobuf.BoolValue', 2),
      append_action: field('int32', 3),
    },
  },
};

export const google = nested({
  protobuf: nested({
    ...protobufStruct,
    BoolValue: { fields: { value: field('bool', 1) } },
    UInt64Value: { fields: { value: field('uint64', 1) } },
    Timestamp: { fields: { seconds: field('int64', 1), nanos: field('int32', 2) } },
    Duration: { fields: { seconds: field('int64', 1), nanos: field('int32', 2) } },
  }),
});

/** The elements of a repeated field that a service has sent. Throws if there are more than a message has headers. */
export function repeatedIn(value: unknown): readonly unknown[] {
  const elements = elementsOf(value);
  if (elements.length > LIMITS.serviceChanges)
    throw new Error(`the answer has more than ${LIMITS.serviceChanges} headers or parameters of one kind`);
  return elements;
}

export interface HeaderValue {
  readonly key: string;
  readonly value: string;
  readonly raw_value?: Buffer;
}

/** A header, as the gRPC package decodes it. */
export function headerIn(value: unknown): HeaderValue {
  const { key, value: text, raw_value: raw } = membersOf(value);
  return { key: textIn(key), value: textIn(text), ...(Buffer.isBuffer(raw) && { raw_value: raw }) };
}

export interface HeaderValueOption {
  readonly header: HeaderValue;
  /** The deprecated `append`. */
  readonly appends: boolean;
  readonly append_action: number;
}

/** Headers to change, as the gRPC package decodes them. */
export const headerOptionsIn = (value: unknown): readonly HeaderValueOption[] =>
  repeatedIn(value).map((one) => {
    const { header, append, append_action: action } = membersOf(one);
    return {
      header: headerIn(header),
      appends: membersOf(append)['value'] === true,
      append_action: typeof action === 'number' ? action : 0,
    };
  });

/** The value of a header, which may be in either of two fields. */
export const headerText = ({ value, raw_value }: HeaderValue): string =>
  raw_value !== undefined && raw_value.length > 0 ? raw_value.toString('latin1') : value;

/** Name and value, unless it is a header that a service cannot set or its value is empty or not valid. */
export function headerOf(header: HeaderValue): readonly [string, string] | undefined {
  const { key } = header;
  const text = headerText(header);
  return text !== '' && isSettableHeader(key) && isHeaderValue(text) ? [key, text] : undefined;
}

/** Applies changes as `append_action` says; without it, `append`, and by default the header is replaced (upstream). */
export function applyHeaderOptions(headers: HeaderList, options: readonly HeaderValueOption[]): void {
  for (const { header, appends, append_action } of options) {
    const found = headerOf(header);
    if (found === undefined) continue;
    const [name, value] = found;
    const action = append_action === 0 ? (appends ? 'append' : 'set') : ACTIONS[append_action];
    if (action === 'addIfAbsent' ? headers.has(name) : action === 'setIfPresent' && !headers.has(name))
      continue;
    if (action === 'append' || action === undefined) headers.append(name, value);
    else headers.set(name, value);
  }
}

/** `HeaderAppendAction`. */
const ACTIONS: Readonly<Record<number, 'append' | 'addIfAbsent' | 'set' | 'setIfPresent'>> = {
  1: 'addIfAbsent',
  2: 'set',
  3: 'setIfPresent',
};
