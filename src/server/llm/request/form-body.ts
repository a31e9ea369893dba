import { randomUUID } from 'node:crypto';
import { elementsOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { llmError } from '../errors.ts';
import type { CallBody } from './call-body.ts';

/** A file of a form. */
interface FilePart {
  readonly filename: string;
  readonly type: string;
  readonly bytes: Buffer;
}

type Part = readonly [name: string, value: string | FilePart];

/**
 * A form (RFC 7578), which carries the files of audio and image calls. The provider receives a newly encoded form:
 * multipart parsers disagree, so the provider could read another model name from the client's bytes than the gateway
 * did (docs/decisions/0022).
 */
export class FormBody implements CallBody {
  readonly value: Readonly<Record<string, unknown>>;
  readonly isReadable = true;
  readonly contentType: string;
  readonly files: number;
  readonly #boundary = `agctl-${randomUUID()}`;
  readonly #parts: readonly Part[];
  readonly #changes = new Map<string, unknown>();

  private constructor(parts: readonly Part[]) {
    this.#parts = parts;
    this.contentType = `multipart/form-data; boundary=${this.#boundary}`;
    this.files = parts.filter(([, value]) => typeof value !== 'string').length;
    this.value = fieldsOf(parts);
  }

  /**
   * Parses a form. Throws an `AppError` (400, OpenAI format) if it is invalid, has a duplicate field, more than
   * `LIMITS.formParts` parts, or part headers over `LIMITS.formHeaderBytes`.
   */
  static async parse(bytes: Buffer, contentType: string): Promise<FormBody> {
    checkPartLimits(bytes, contentType);
    let form: FormData;
    try {
      form = await new Response(bytes, { headers: { 'content-type': contentType } }).formData();
    } catch {
      throw invalid('it does not parse');
    }
    const parts = await Promise.all([...form.entries()].map(partOf));
    return new FormBody(parts);
  }

  original(): FormBody {
    return new FormBody(this.#parts);
  }

  fields(): string[] {
    return [...new Set([...Object.keys(this.value), ...this.#changes.keys()])];
  }

  get(field: string): unknown {
    return this.#changes.has(field) ? this.#changes.get(field) : this.value[field];
  }

  has(field: string): boolean {
    return this.get(field) !== undefined;
  }

  set(field: string, value: unknown): void {
    this.#changes.set(field, value);
  }

  remove(field: string): void {
    this.#changes.set(field, undefined);
  }

  encode(): Buffer {
    const kept = this.#parts.filter(([name, value]) => typeof value !== 'string' || !this.#changes.has(name));
    const changed = [...this.#changes].flatMap(([name, value]): Part[] => {
      const values = Array.isArray(value) ? elementsOf(value) : [value];
      return values.flatMap((each) => (each === undefined ? [] : [[name, textOf(each)] as const]));
    });
    const encoded = [...changed, ...kept].flatMap((part) => this.#encodePart(part));
    return Buffer.concat([...encoded, Buffer.from(`--${this.#boundary}--\r\n`)]);
  }

  #encodePart([name, value]: Part): Buffer[] {
    const isText = typeof value === 'string';
    const disposition = `form-data; name="${quoted(name)}"${isText ? '' : `; filename="${quoted(value.filename)}"`}`;
    const type = isText || value.type === '' ? '' : `content-type: ${value.type}\r\n`;
    const head = `--${this.#boundary}\r\ncontent-disposition: ${disposition}\r\n${type}\r\n`;
    return [Buffer.from(head), isText ? Buffer.from(value) : value.bytes, Buffer.from('\r\n')];
  }

  toString(): string {
    const changes = Object.fromEntries(this.#changes);
    return JSON.stringify({ ...this.value, ...changes });
  }
}

const invalid = (why: string): Error =>
  llmError('llm_invalid', 'invalid_request_body', `LLM request body must be a valid form: ${why}`);

/** A content type with exactly one boundary, so that the parser uses the same one. Some clients add a charset. */
const FORM_TYPE =
  /^multipart\/form-data(?:\s*;\s*charset="?utf-8"?)?\s*;\s*boundary=(?:"([^"\\]{1,70})"|([^\s";,]{1,70}))(?:\s*;\s*charset="?utf-8"?)?\s*;?$/i;

/** Rejects forms that would block the process, because the parser looks at every part and line. */
function checkPartLimits(bytes: Buffer, contentType: string): void {
  const [, quotedBoundary, plainBoundary] = FORM_TYPE.exec(contentType.trim()) ?? [];
  const boundary = quotedBoundary ?? plainBoundary;
  if (boundary === undefined) throw invalid('its content type is not `multipart/form-data; boundary=…`');
  const delimiter = `--${boundary}`;
  let parts = 0;
  for (let at = bytes.indexOf(delimiter); at !== -1; at = bytes.indexOf(delimiter, at + delimiter.length)) {
    parts += 1;
    if (parts > LIMITS.formParts) throw invalid(`it has more than ${LIMITS.formParts} parts`);
    const head = bytes.subarray(at, at + delimiter.length + LIMITS.formHeaderBytes);
    if (head.length > LIMITS.formHeaderBytes && head.indexOf('\r\n\r\n') === -1)
      throw invalid(`a part has headers of more than ${LIMITS.formHeaderBytes} bytes`);
  }
}

async function partOf([name, value]: [string, string | File]): Promise<Part> {
  if (typeof value === 'string') return [name, value];
  // Any other type is not valid in a header line.
  const type = /^[\x21-\x7e]+(?:; [\x21-\x7e]+)*$/.test(value.type) ? value.type : '';
  return [name, { filename: value.name, type, bytes: Buffer.from(await value.arrayBuffer()) }];
}

/** `timestamp_granularities[]` is a list, sent as one part per item. */
const isList = (name: string): boolean => name.endsWith('[]');

function fieldsOf(parts: readonly Part[]): Record<string, unknown> {
  const fields = new Map<string, string | string[]>();
  for (const [name, value] of parts) {
    if (typeof value !== 'string') continue;
    const known = fields.get(name);
    if (known !== undefined && !isList(name)) throw invalid('duplicate field');
    if (isList(name)) fields.set(name, [...(known ?? []), value]);
    else fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Percent-encodes characters that would end the quoted string or the line (HTML standard, "Multipart form data"). */
const quoted = (text: string): string =>
  text.replace(/["\r\n]/g, (sign) => (sign === '"' ? '%22' : sign === '\r' ? '%0D' : '%0A'));
