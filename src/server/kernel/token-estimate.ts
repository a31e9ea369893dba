/** Four bytes of text are roughly one token in all languages that common tokenizers were made for. */
export const BYTES_PER_TOKEN = 4;

/** Estimated tokens of a text with so many bytes (docs/decisions/0005). */
export const tokensOf = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN);
