const LINE_FEED = 10;

/**
 * The end of a part of a text in UTF-8 that begins at `from` and has at most `most` bytes: after the last line end in its second
 * half, or else between two characters. A cut inside a surrogate pair would make JSON that providers refuse (vertesia/llumiverse#462).
 */
export function partEnd(bytes: Buffer, from: number, most: number): number {
  if (bytes.length - from <= most) return bytes.length;
  const end = from + most;
  const half = from + Math.ceil(most / 2);
  const line = bytes.subarray(half, end).lastIndexOf(LINE_FEED);
  if (line !== -1) return half + line + 1;
  let at = end;
  while (at > from && isContinuation(bytes[at])) at -= 1;
  return at;
}

/** The ends of all parts of a text. `most` is at least the four bytes of a character. */
export function partEnds(bytes: Buffer, most: number): number[] {
  const ends: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    at = partEnd(bytes, at, most);
    ends.push(at);
  }
  return ends;
}

/** Whether a byte continues a character. */
const isContinuation = (byte = 0): boolean => (byte & 0xc0) === 0x80;
