/** The body of an LLM request: JSON, a form, or any bytes on a `passthrough` path. */
export interface CallBody {
  /** Fields as the client sent them. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Whether guardrails can read its texts. */
  readonly isReadable: boolean;
  /** Content type for the provider. Undefined: that of the client. */
  readonly contentType: string | undefined;
  /** Number of attached images, recordings and files. */
  readonly files: number;
  /** Model names found outside the field `model`. */
  readonly names?: readonly string[];
  /** The request without changes. */
  original(): CallBody;
  /** The current value of a field; undefined if it is absent. */
  get(field: string): unknown;
  has(field: string): boolean;
  set(field: string, value: unknown): void;
  remove(field: string): void;
  /** The bytes for the provider; null for no body. */
  encode(): string | Buffer | null;
  /** The current fields as JSON text, for traces and the built-in model. */
  toString(): string;
}

/** A body of unknown format, forwarded unchanged. It has no fields. */
export class OpaqueBody implements CallBody {
  readonly value = {};
  readonly isReadable: boolean;
  readonly contentType = undefined;
  readonly files = 0;
  readonly #bytes: Buffer;

  readonly names: readonly string[];

  constructor(bytes: Buffer, contentType: string) {
    this.#bytes = bytes;
    const isQuery = /^application\/x-www-form-urlencoded\b/i.test(contentType);
    this.names = isQuery ? new URLSearchParams(bytes.toString('utf8')).getAll('model') : [];
    this.isReadable = bytes.length === 0;
  }

  original(): this {
    return this;
  }

  get(): undefined {
    return undefined;
  }

  has(): boolean {
    return false;
  }

  set(): void {
    // There are no fields.
  }

  remove(): void {
    // There are no fields.
  }

  encode(): Buffer | null {
    return this.#bytes.length === 0 ? null : this.#bytes;
  }

  toString(): string {
    return '{}';
  }
}
