import { type Embedder, normalise } from '../embed/embedder.ts';

/** Texts that have nothing in common. Each has the length and form of a typical passage or query. */
const TEXTS = [
  'Simmer the onions in butter until they are golden, then add the rice and stir.',
  'The treaty ended the war and moved the border to the river.',
  'A violin has four strings, tuned in fifths.',
  'Interest is added to the loan on the first day of each month.',
  'Whales breathe air and nurse their young.',
  'The goalkeeper saved two penalties in the second half.',
  'Turn the key to the left and pull the door towards you.',
  'Photosynthesis turns light, water and carbon dioxide into sugar.',
  'The function returns an error if the argument is negative.',
  'Our flight was cancelled because of fog.',
  'She painted the portrait of her sister in 1886.',
  'Wash wool by hand in cold water.',
] as const;

const known = new WeakMap<Embedder, Promise<number>>();

/**
 * The mean cosine of unrelated texts, which differs between models: near 0 for many, 0.7 for some. Cosines are compared
 * with it, so that one threshold suits every model. Measured once per embedder; 0 for the built-in one.
 *
 * @throws AppError of the embedder; the next call tries again
 */
export function unrelatedCosine(embedder: Embedder): Promise<number> {
  if (embedder.isImmediate) return Promise.resolve(0);
  let measured = known.get(embedder);
  if (measured === undefined) {
    measured = measure(embedder).catch((error: unknown) => {
      known.delete(embedder);
      throw error;
    });
    known.set(embedder, measured);
  }
  return measured;
}

/** From the length of the sum of the vectors: its square is the sum of the cosines of all pairs. */
async function measure(embedder: Embedder): Promise<number> {
  const vectors = (await embedder.embed(TEXTS)).map(normalise);
  const count = vectors.length;
  const size = vectors[0]?.length ?? 0;
  let square = 0;
  for (let index = 0; index < size; index += 1) {
    let sum = 0;
    for (const vector of vectors) sum += vector[index] ?? 0;
    square += sum * sum;
  }
  return Math.min(0.95, Math.max(0, (square - count) / (count * (count - 1))));
}
