/** The body of an LLM request: JSON, a form, or anything where `passthrough` opens the path. */
export interface CallBody {
  /** Fields as the client sent them. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Whether guardrails can read what it says. */
  readonly isReadable: boolean;
  /** Content type for the provider, when it is not the client's. */
  readonly contentType: string | undefined;
  /** Images, recordings and files beside the fields. */
  readonly files: number;
  /** Models that it names besides the field `model`. */
  readonly names?: readonly string[];
  /** The same request without the changes so far. */
  unchanged(): CallBody;
  /** The value of a field after the changes so far; undefined when it is absent. */
  get(field: string): unknown;
  has(field: string): boolean;
  set(field: string, value: unknown): void;
  remove(field: string): void;
  /** What the provider gets; null for nothing. */
  encode(): string | Buffer | null;
  /** The fields, changes included, as JSON text: for traces and for the built-in model. */
  toString(): string;
}

/** A body that goes on as it came, because its form is not known. It has no fields to read or to change. */
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

  unchanged(): this {
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
