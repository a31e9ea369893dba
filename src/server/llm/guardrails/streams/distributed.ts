/**
 * Distributes a masked text over the events that had the original text, so that no event is added or removed. Events
 * before the first and after the last change keep their text; those between share the rest by their length.
 */
export function distributed(parts: readonly string[], masked: string): string[] {
  const text = parts.join('');
  const prefix = commonPrefix(text, masked);
  const suffix = commonSuffix(text, masked, Math.min(text.length, masked.length) - prefix);
  const end = text.length - suffix;
  const changed = masked.slice(prefix, masked.length - suffix);
  /** Position in the changed text for a position in the original. */
  const placeOf = (at: number): number => {
    if (at <= prefix) return 0;
    if (at >= end) return changed.length;
    return betweenCharacters(changed, Math.round(((at - prefix) / (end - prefix)) * changed.length));
  };
  let from = 0;
  let isPlaced = false;
  return parts.map((part, index) => {
    const to = from + part.length;
    const before = text.slice(from, Math.min(to, prefix));
    const after = text.slice(Math.max(from, end), to);
    // An insertion replaces no text, so it belongs to the first event that reaches its position.
    const isInsertion = end === prefix && !isPlaced && (to > prefix || index === parts.length - 1);
    const between = isInsertion ? changed : end === prefix ? '' : changed.slice(placeOf(from), placeOf(to));
    isPlaced ||= isInsertion;
    from = to;
    return before + between + after;
  });
}

/** Number of characters that two texts have in common at their start. */
export function commonPrefix(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  return betweenCharacters(a, betweenCharacters(b, length));
}

function commonSuffix(a: string, b: string, most: number): number {
  let length = 0;
  while (length < most && a.charCodeAt(a.length - 1 - length) === b.charCodeAt(b.length - 1 - length))
    length += 1;
  // A suffix that begins with the second half of a pair leaves that half to the changed text.
  const starts = [a, b].map((text) => text.charCodeAt(text.length - length));
  return starts.some(isLowSurrogate) && length > 0 ? length - 1 : length;
}

/** The position, or the one before it if it is inside a surrogate pair: JSON of half a pair is not valid Unicode. */
function betweenCharacters(text: string, at: number): number {
  return at > 0 && at < text.length && isLowSurrogate(text.charCodeAt(at)) ? at - 1 : at;
}

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;
