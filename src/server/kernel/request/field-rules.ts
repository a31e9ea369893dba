import { HOP_BY_HOP, OVERRIDES } from './header-list.ts';

/** What a protocol says of the header fields of its requests. */
export interface ProtocolFields {
  /** Fields that a request must not have twice. */
  readonly single?: readonly SingleField[];
  /** Beginnings of names of fields that are meant for all recipients. */
  readonly endToEnd?: readonly string[];
}

export interface SingleField {
  /** In lower case. */
  readonly name: string;
  /** The normal form of a value, which all who read the field get. If present, the same value may be sent twice. */
  readonly normal?: (sent: string) => string;
}

/** Servers differ in using the first, last or joined value of these (RFC 9110 §5.3, §7.2; RFC 6454 §7.3). */
const SINGLE: readonly SingleField[] = [
  { name: 'host' },
  { name: 'authorization' },
  { name: 'content-type' },
  { name: 'content-length' },
  { name: 'origin' },
];

/** Names of others that are meant for all recipients, or that frame the body, and the beginnings of more. */
const END_TO_END = new Set(['cookie', 'transfer-encoding', 'tracestate', 'user-agent', 'vary', 'via']);
const END_TO_END_FROM =
  /^(?:accept|access-control-|api-key|authorization-|baggage|cache-control|content-|date|expect|forwarded|if-|last-event-id|pragma|priority|range|referer|sec-|traceparent|x-(?:amz-|api-|csrf|envoy-|forwarded|goog-|http-method|method-override|original-|real-ip|request|xsrf))/;

/** Such a field, with a bit to record that the request has it. */
export interface SingleRule extends SingleField {
  readonly bit: number;
}

/** The rules of HTTP and of the protocols that a gateway speaks. */
export class FieldRules {
  /** By name. */
  readonly single: ReadonlyMap<string, SingleRule>;
  /** By length of a name: whether a field of that length has a rule. Names are compared after that, because lower-casing all is slow. */
  readonly lengths: readonly boolean[];
  readonly #endToEnd: readonly string[];

  constructor(protocols: readonly ProtocolFields[]) {
    const all = [...SINGLE, ...protocols.flatMap(({ single = [] }) => single)];
    this.single = new Map(all.map((field, index) => [field.name, { ...field, bit: 1 << index }]));
    const names = [...this.single.keys(), ...HOP_BY_HOP, ...OVERRIDES];
    const longest = Math.max(...names.map((name) => name.length));
    this.lengths = Array.from({ length: longest + 1 }, (_, length) =>
      names.some((name) => name.length === length),
    );
    this.#endToEnd = protocols.flatMap(({ endToEnd = [] }) => endToEnd);
  }

  /**
   * Whether a field, by its name in lower case, determines the meaning and the sender of a request, or is read by the gateway itself.
   * `Connection` must not name it (RFC 9110 §7.6.1): a client could choose which server receives it.
   */
  isEndToEnd(name: string): boolean {
    return (
      this.single.has(name) ||
      END_TO_END.has(name) ||
      END_TO_END_FROM.test(name) ||
      this.#endToEnd.some((beginning) => name.startsWith(beginning))
    );
  }
}
