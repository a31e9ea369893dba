/**
 * Edit distance with insertions, deletions, substitutions and swaps of neighbours (the optimal string alignment
 * form of Damerau-Levenshtein), in UTF-16 units.
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/**
 * The candidate that `word` was probably meant to be, or undefined. Ignores case; at most a third of the letters (at
 * least one) may differ, and the first of several equally near candidates wins.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  // A single letter resembles no other letter.
  const limit = wanted.length < 2 ? 0 : Math.max(1, Math.floor(wanted.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    // The length difference is a lower bound of the distance, so a hostile 5 MB key is never compared.
    if (Math.abs(candidate.length - word.length) > limit) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/**
 * The candidate that `word` is the beginning of (`percent` for `percentage`, `user` for `username`), if there is only
 * one. Fewer than three letters begin too much.
 */
export function completed(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length < 3) return undefined;
  const wanted = word.toLowerCase();
  const found = [...candidates].filter((each) => each.toLowerCase().startsWith(wanted));
  return found.length === 1 ? found[0] : undefined;
}

/** The first candidate that ends with `word`, of at least five letters: `localRateLimit` for `ratelimit`. */
export function ending(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  return wanted.length < 5 ? undefined : [...candidates].find((each) => each.toLowerCase().endsWith(wanted));
}

/**
 * The longest candidate, of at least four letters, that `word` begins with: `basicAuth` for `basicAuthentication`.
 */
export function shortened(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  const found = [...candidates].filter((each) => each.length >= 4 && wanted.startsWith(each.toLowerCase()));
  return found.sort((a, b) => b.length - a.length)[0];
}
