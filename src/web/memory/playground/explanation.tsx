import type { ReactNode } from 'react';
import type { SearchResult } from '../model.ts';

interface Part {
  readonly name: string;
  /** 1 and more fill the bar; null if there is none. */
  readonly value: number | null;
  readonly meaning: string;
}

/** The parts of a score, in the order in which they are computed. */
function partsOf({ score, cosine, debug }: SearchResult): Part[] {
  const parts: readonly Part[] =
    debug === undefined
      ? []
      : [
          { name: 'vector', value: debug.vector, meaning: 'the cosine above that of unrelated texts' },
          {
            name: 'words',
            value: debug.words,
            meaning: 'words of the query that occur; rare ones count more',
          },
          { name: 'fused', value: debug.fused, meaning: 'vector and words together' },
        ];
  return [
    { name: 'cosine', value: cosine, meaning: 'similarity of the two vectors' },
    ...parts,
    { name: 'score', value: score, meaning: 'fused, so that 0.7 means related; compared with minScore' },
  ];
}

/** How the score of a result came about. */
export function Explanation({ result }: { readonly result: SearchResult }): ReactNode {
  return (
    <details className="explanation">
      <summary>Why this score</summary>
      <table className="details">
        <tbody>
          {partsOf(result).map(({ name, value, meaning }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td className="mono">{value === null ? '–' : value.toFixed(4)}</td>
              <td>
                {value === null ? (
                  'no vector'
                ) : (
                  <meter min={0} max={1} value={value} aria-label={`${name} ${value.toFixed(2)}`} />
                )}
              </td>
              <td className="quiet">{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
