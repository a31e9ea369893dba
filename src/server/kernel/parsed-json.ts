/** Values of JSON texts, by the bytes that were parsed. Parsing is the larger part of what `json(request.body)` costs. */
const parsed = new WeakMap<Uint8Array, object>();

/** Keeps the value of JSON bytes for as long as the bytes are referenced. It must not change. */
export function rememberJson(bytes: Uint8Array, value: object): void {
  parsed.set(bytes, value);
}

/** The value, when these bytes were parsed before. */
export function knownJson(bytes: Uint8Array): object | undefined {
  return parsed.get(bytes);
}
