// Entities for the stores: vectors in clusters, texts with the word distribution of prose, a graph. The same in every
// run.
export const EMBEDDER = 'bench/128';
const CLUSTERS = 1_000;
const WORDS = Array.from({ length: 5_000 }, (_, n) => `word${n.toString(36)}`);

function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function normalised(vector) {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const scale = 1 / Math.sqrt(sum);
  return vector.map((value) => value * scale);
}

/** @param count entities in all, @param perDocument of them in one document */
export class StoreData {
  #random = randomFrom(7);
  #centres = Array.from({ length: CLUSTERS }, () =>
    normalised(new Float32Array(128).map(() => this.#random() - 0.5)),
  );

  constructor(count, perDocument) {
    this.count = count;
    this.perDocument = perDocument;
    this.documentCount = Math.ceil(count / perDocument);
  }

  #pick(list) {
    return list[Math.floor(this.#random() * list.length)];
  }

  vector() {
    const centre = this.#pick(this.#centres);
    return normalised(centre.map((value) => value + (this.#random() - 0.5) * 0.12));
  }

  word() {
    return this.#pick(WORDS);
  }

  /** Squared: few words are common and most are rare, as in prose. */
  #text() {
    return Array.from({ length: 80 }, () => WORDS[Math.floor(this.#random() ** 2 * WORDS.length)]).join(' ');
  }

  /** Id of any chunk. */
  chunkId() {
    const document = Math.floor(this.#random() * this.documentCount);
    return `bench:${document}:${Math.floor(this.#random() * this.perDocument)}`;
  }

  #chunk(number, part) {
    const text = this.#text();
    return {
      id: `bench:${number}:${part}`,
      name: `doc ${number} > ${part}`,
      type: 'doc_chunk',
      content: text,
      metadata: { source: `doc ${number}`, ordinal: part },
      searchText: text,
      embedding: this.vector(),
    };
  }

  /** Four relations per chunk: to its document, and to three random others. */
  document(number) {
    const file = {
      id: `bench:${number}:file`,
      name: `doc ${number}`,
      type: 'doc_file',
      content: '',
      metadata: {},
      searchText: '',
    };
    const chunks = Array.from({ length: this.perDocument }, (_, part) => this.#chunk(number, part));
    const relations = chunks.flatMap(({ id: fromId }) => [
      { fromId, toId: file.id, relationType: 'BELONGS_TO', weight: 1 },
      ...[0.9, 0.6, 0.3].map((weight) => ({
        fromId,
        toId: this.chunkId(),
        relationType: 'REFERENCES',
        weight,
      })),
    ]);
    return {
      key: `doc ${number}`,
      origin: 'ingest',
      hash: `${number}`,
      embedder: EMBEDDER,
      entities: [file, ...chunks],
      relations,
    };
  }

  /** A file of the docs folder: three sections, some 1,800 characters. */
  markdown(number) {
    const section = (title) => `## ${title}\n\n${this.#text()}.\n`;
    const next = `See [the next](file-${number + 1}.md).`;
    return `# File ${number}\n\n${next}\n\n${['Purpose', 'Usage', 'Limits'].map(section).join('\n')}`;
  }
}
