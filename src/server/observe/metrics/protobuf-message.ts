/**
 * Writes one Protocol Buffers message. No package that is always installed can: `protobufjs`, which has an install script
 * (docs/decisions/0028), comes with the optional `@grpc/proto-loader`, and those of `pprof-format` and OpenTelemetry write their own messages only.
 */
export class ProtobufMessage {
  readonly #bytes: number[] = [];

  string(field: number, text: string): void {
    this.#delimited(field, Buffer.from(text));
  }

  message(field: number, message: ProtobufMessage): void {
    this.#delimited(field, message.#bytes);
  }

  /** `uint32`, `uint64` or an enumeration; a safe integer. */
  uint(field: number, value: number): void {
    this.#varint(field * 8);
    this.#varint(value);
  }

  /** `sint32` or `sint64`; a safe integer. */
  sint(field: number, value: number): void {
    this.uint(field, zigzag(value));
  }

  /** `repeated sint64`, packed. */
  sints(field: number, values: readonly number[]): void {
    const packed = new ProtobufMessage();
    for (const value of values) packed.#varint(zigzag(value));
    this.message(field, packed);
  }

  double(field: number, value: number): void {
    this.#varint(field * 8 + 1);
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    for (const byte of bytes) this.#bytes.push(byte);
  }

  /** The message after its length, as in a stream of messages. */
  delimited(): Buffer {
    const prefix = new ProtobufMessage();
    prefix.#varint(this.#bytes.length);
    return Buffer.concat([Buffer.from(prefix.#bytes), Buffer.from(this.#bytes)]);
  }

  #delimited(field: number, bytes: Iterable<number> & { readonly length: number }): void {
    this.#varint(field * 8 + 2);
    this.#varint(bytes.length);
    for (const byte of bytes) this.#bytes.push(byte);
  }

  /** Divides instead of shifting, which is limited to 32 bits. */
  #varint(value: number): void {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) + 128);
    this.#bytes.push(rest);
  }
}

/** Small numbers for small absolute values: 0, -1, 1, -2. */
function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}
