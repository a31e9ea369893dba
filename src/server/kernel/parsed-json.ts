/** Parsed values by the bytes of their JSON text. Parsing is most of the cost of `json(request.body)`. */
const parsed = new WeakMap<Uint8Array, object>();

/** Remembers the parsed value of JSON bytes while the bytes are referenced. The value must not be modified. */
export function rememberJson(bytes: Uint8Array, value: object): void {
  parsed.set(bytes, value);
}

/** The remembered value of these bytes, or undefined. */
export function knownJson(bytes: Uint8Array): object | undefined {
  return parsed.get(bytes);
}
