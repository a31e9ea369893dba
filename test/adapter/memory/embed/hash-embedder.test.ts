import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHashEmbedder, hashVector } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { stemOf, wordsOf } from '../../../../src/adapter/memory/tokenizer.ts';

function cosine(left: string, right: string): number {
  const [a, b] = [hashVector(left), hashVector(right)];
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

describe('tokenization', () => {
  test.each([
    ['maxSessions of HTTPServer', ['maxsessions', 'max', 'sessions', 'of', 'httpserver', 'http', 'server']],
    ['snake_case-and 8080', ['snake', 'case', 'and', '8080']],
    ['Café ﬁn ÄÖ', ['cafe', 'fin', 'ao']],
    ['データベース', ['デー', 'ータ', 'タベ', 'ベー', 'ース']],
    ['हिन्दी Ελλάδα', ['हिन्दी', 'ελλαδα']],
    ['😀 --- \ud800', []],
  ])('the text %j is tokenized into its words', (text, expected) => {
    expect([...wordsOf(text)]).toEqual(expected);
  });

  test('ASCII words are tokenized the same with and without other letters in the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', maxLength: 100 }), (text) => {
        expect(wordsOf(`${text} ж`)).toEqual([...wordsOf(text), 'ж']);
      }),
    );
  });

  test.each([
    ['limits limited limiting limit', 'limit'],
    ['authorization authorize authorized', 'authoriz'],
    ['config configs', 'config'],
  ])('the words %s have one stem', (forms, _) => {
    expect(new Set(forms.split(' ').map(stemOf)).size).toBeLessThanOrEqual(2);
  });
});

describe('the built-in embedder', () => {
  test('the built-in embedder gives the same numbers on every platform and run', () => {
    const golden = [
      [
        'How are tokens checked?',
        ['59:-0.47609', '76:0.47609', '78:-0.47609', '92:-0.47609', '29:-0.08722', '21:0.08268'],
      ],
      [
        'Größe der Datenbank, データ',
        ['7:0.31188', '22:0.31188', '34:-0.31188', '44:-0.31188', '78:0.31188', '83:0.31188'],
      ],
    ] as const;
    for (const [text, expected] of golden) {
      const vector = hashVector(text);
      const largest = [...vector.entries()]
        .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || a[0] - b[0])
        .slice(0, 6);
      expect(largest.map(([index, value]) => `${index}:${value.toFixed(5)}`)).toEqual(expected);
    }
  });

  test('the built-in embedder gives unit vectors of 128 numbers in order, and zeros for a text without words', async () => {
    const embedder = createHashEmbedder();
    const seen: number[] = [];
    const texts = Array.from({ length: 100 }, (_, index) => `text number ${index}`);
    const vectors = await embedder.embed([...texts, '-- !'], undefined, (done) => seen.push(done));
    expect(embedder.id).toBe('hash-v2/128');
    expect(vectors).toHaveLength(101);
    for (const [index, vector] of vectors.slice(0, 100).entries()) {
      expect(vector).toHaveLength(128);
      expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
      expect(vector).toEqual(hashVector(texts[index] ?? ''));
    }
    expect(vectors[100]?.every((value) => value === 0)).toBe(true);
    expect(seen.at(-1)).toBe(101);
  });

  test('the built-in embedder stops when aborted', async () => {
    const texts = Array.from({ length: 500 }, (_, index) => `text ${index}`);
    await expect(createHashEmbedder().embed(texts, AbortSignal.abort(new Error('enough')))).rejects.toThrow(
      'enough',
    );
  });

  test('the built-in embedder ranks inflections and misspellings nearer than other subjects', () => {
    const text = 'Rate limits\n\nRequests of a client are limited per minute.';
    expect(cosine('rate limiting', text)).toBeGreaterThan(cosine('database backup', text) + 0.2);
    expect(cosine('authentification', 'authentication')).toBeGreaterThan(
      cosine('authentification', 'database') + 0.1,
    );
  });
});
