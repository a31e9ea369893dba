import type { Json } from '../chat/chat-format.ts';
import type { CallBody } from '../request/call-body.ts';

/** A request that a translation has written. */
export class WrittenBody implements CallBody {
  readonly isReadable = true;
  readonly contentType = 'application/json';
  readonly files = 0;
  readonly value: Json;
  readonly #members: Record<string, unknown>;

  constructor(value: Json) {
    this.value = value;
    this.#members = { ...value };
  }

  original(): WrittenBody {
    return new WrittenBody(this.value);
  }

  fields(): string[] {
    return Object.keys(this.#members);
  }

  get(field: string): unknown {
    return this.#members[field];
  }

  has(field: string): boolean {
    return Object.hasOwn(this.#members, field);
  }

  set(field: string, value: unknown): void {
    this.#members[field] = value;
  }

  remove(field: string): void {
    delete this.#members[field];
  }

  encode(): string {
    return this.toString();
  }

  toString(): string {
    return JSON.stringify(this.#members);
  }
}
