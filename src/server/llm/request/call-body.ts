import { tryEvaluate } from '../../expressions/cel/expression.ts';
import type { Expression, VariableResolver } from '../../kernel/expression.ts';

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
  /** Names of the current fields. */
  fields(): string[];
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

  fields(): [] {
    return [];
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

export interface FieldChanges {
  readonly overrides: readonly (readonly [field: string, value: unknown])[];
  readonly transformations: readonly (readonly [field: string, value: Expression])[];
  readonly defaults: readonly (readonly [field: string, value: unknown])[];
}

/**
 * Changes the fields of a request. Expressions read the client's request (`lookup`), not the result of another
 * expression. A transformation takes precedence over an override of the same field; one that fails removes the field.
 * Defaults then set missing fields (the specification's "Transformation", design table row 19).
 */
export function changeFields(
  body: CallBody,
  { overrides, transformations, defaults: usual }: FieldChanges,
  lookup: VariableResolver,
  defaults: FieldChanges['defaults'] = usual,
): void {
  const results = transformations.map(([field, expression]) => [field, attempt(expression, lookup)] as const);
  for (const [field, value] of overrides) body.set(field, value);
  for (const [field, value] of results) {
    if (value === undefined) body.remove(field);
    else body.set(field, value);
  }
  for (const [field, value] of defaults) if (!body.has(field)) body.set(field, value);
}

/** The value of an expression; undefined if it fails or cannot be represented in JSON. */
function attempt(expression: Expression, lookup: VariableResolver): unknown {
  const value = tryEvaluate(expression, lookup);
  const hasNoJson = value instanceof Uint8Array || (typeof value === 'number' && !Number.isFinite(value));
  return hasNoJson ? undefined : value;
}
