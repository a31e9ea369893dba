// Reads what an ONNX file says of itself, without the runtime: a message of Protocol Buffers whose weights are skipped by their length
// (field numbers from https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). Libraries for such messages read them whole into memory.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** What is checked of a model before it is loaded. */
export interface OnnxFile {
  /** Names of what the model takes, without weights that are listed among them. */
  readonly inputs: readonly string[];
  /** Files with weights, relative to the model. */
  readonly weights: readonly string[];
}

const DAMAGED = 'is not an ONNX model, or is damaged or was not copied completely';
const WINDOW = 64 * 1024;
/** Bytes of a name, and names and files of one model. */
const NAME = 4_096;
const NAMES = 100_000;

/** A field of a message: its number, and where its content is. A number has no content. */
interface Field {
  readonly field: number;
  readonly number: number | undefined;
  readonly start: number;
  readonly end: number;
}

class OnnxReader {
  readonly #descriptor: number;
  readonly size: number;
  #window: Buffer = Buffer.alloc(0);
  #from = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.size = fstatSync(descriptor).size;
  }

  #byte(at: number): number {
    if (at < this.#from || at >= this.#from + this.#window.length) {
      this.#window = this.#read(at, WINDOW);
      this.#from = at;
    }
    const byte = this.#window[at - this.#from];
    if (byte === undefined) throw new Error(DAMAGED);
    return byte;
  }

  #read(at: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(this.#descriptor, bytes, 0, length, at));
  }

  /** A number of at most ten bytes; those beyond 2^53 are not exact. */
  #varint(at: number, end: number): { readonly value: number; readonly next: number } {
    let value = 0;
    for (let index = 0; index < 10 && at + index < end; index += 1) {
      const byte = this.#byte(at + index);
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return { value, next: at + index + 1 };
    }
    throw new Error(DAMAGED);
  }

  /** The fields of the message in this part of the file. @throws Error if it is none */
  *fields(start: number, end: number): Generator<Field> {
    for (let at = start; at < end; ) {
      const { value: tag, next } = this.#varint(at, end);
      const field = Math.floor(tag / 8);
      const wire = tag % 8;
      if (field === 0) throw new Error(DAMAGED);
      if (wire === 0) {
        const { value, next: after } = this.#varint(next, end);
        yield { field, number: value, start: next, end: after };
        at = after;
        continue;
      }
      const length = wire === 2 ? this.#varint(next, end) : { value: FIXED.get(wire), next };
      if (length.value === undefined || length.next + length.value > end) throw new Error(DAMAGED);
      at = length.next + length.value;
      yield { field, number: undefined, start: length.next, end: at };
    }
  }

  /** The text in a field of a message. */
  text(message: Field, wanted: number): string {
    for (const { field, number, start, end } of this.fields(message.start, message.end))
      if (field === wanted && number === undefined && end - start <= NAME)
        return this.#read(start, end - start).toString('utf8');
    return '';
  }
}

/** Bytes of values of a fixed length, by the type of the field. */
const FIXED: ReadonlyMap<number, number> = new Map([
  [1, 8],
  [5, 4],
]);

const MODEL = { irVersion: 1, graph: 7 } as const;
const GRAPH = { initializer: 5, input: 11 } as const;
const VALUE_NAME = 1;
const TENSOR = { name: 8, externalData: 13 } as const;
const ENTRY = { key: 1, value: 2 } as const;

/**
 * Reads the names in a model.
 *
 * @throws Error that says what is wrong with the file
 */
export function readOnnxFile(path: string): OnnxFile {
  const descriptor = openSync(path, 'r');
  try {
    const reader = new OnnxReader(descriptor);
    const fields = [...first(reader.fields(0, reader.size), NAMES)];
    const graph = fields.find(({ field, number }) => field === MODEL.graph && number === undefined);
    const isModel = fields.some(({ field, number }) => field === MODEL.irVersion && number !== undefined);
    if (graph === undefined || !isModel) throw new Error(DAMAGED);
    return namesIn(reader, graph);
  } finally {
    closeSync(descriptor);
  }
}

function namesIn(reader: OnnxReader, graph: Field): OnnxFile {
  const inputs = new Set<string>();
  const tensors = new Set<string>();
  const weights = new Set<string>();
  for (const part of reader.fields(graph.start, graph.end)) {
    if (inputs.size + tensors.size > NAMES) throw new Error(DAMAGED);
    if (part.number !== undefined) continue;
    if (part.field === GRAPH.input) inputs.add(reader.text(part, VALUE_NAME));
    if (part.field !== GRAPH.initializer) continue;
    tensors.add(reader.text(part, TENSOR.name));
    for (const entry of reader.fields(part.start, part.end))
      if (
        entry.field === TENSOR.externalData &&
        entry.number === undefined &&
        reader.text(entry, ENTRY.key) === 'location'
      )
        weights.add(reader.text(entry, ENTRY.value));
  }
  return { inputs: [...inputs].filter((name) => !tensors.has(name)), weights: [...weights] };
}

function* first<T>(all: Iterable<T>, most: number): Generator<T> {
  let count = 0;
  for (const one of all) {
    count += 1;
    if (count > most) throw new Error(DAMAGED);
    yield one;
  }
}
