/** Base64 of little-endian 32-bit floats, in which OpenAI's clients ask for embeddings. */
export function packedVector(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return bytes.toString('base64');
}
