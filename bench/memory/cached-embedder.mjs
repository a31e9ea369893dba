import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Keeps the vectors of a slow embedder in a folder, so that only the first run waits for them. */
export function cachedEmbedder(embedder, folder) {
  if (folder === undefined) return embedder;
  mkdirSync(folder, { recursive: true });
  const fileOf = (kind, text) =>
    join(folder, createHash('sha256').update(`${embedder.id}\0${kind}\0${text}`).digest('hex'));
  const read = (file) => {
    const bytes = readFileSync(file);
    return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  };
  const write = (file, vector) =>
    writeFileSync(file, Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength));
  return {
    ...embedder,
    async embed(texts, ...rest) {
      const files = texts.map((text) => fileOf('document', text));
      const missing = [...texts.keys()].filter((index) => !existsSync(files[index]));
      const vectors =
        missing.length === 0
          ? []
          : await embedder.embed(
              missing.map((index) => texts[index]),
              ...rest,
            );
      for (const [place, index] of missing.entries()) write(files[index], vectors[place]);
      return files.map(read);
    },
    async embedQuery(text, signal) {
      const file = fileOf('query', text);
      if (!existsSync(file)) write(file, await embedder.embedQuery(text, signal));
      return read(file);
    },
  };
}
