import { Fragment, type ReactNode } from 'react';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import type { SearchResult } from '../model.ts';
import { plainText } from './plain-text.ts';

/**
 * `below`: under the threshold. `crowded`: above it, but not within the limit. `repeated`: better results of the same
 * document are returned.
 */
export type Standing = 'given' | 'repeated' | 'crowded' | 'below';

const REASONS = {
  repeated: 'same document as a better result',
  crowded: 'beyond the limit',
  below: 'below minScore',
} as const;

/** One result: its score, its source, and its text with the words of the query marked. */
export function Result({
  result,
  query,
  standing,
}: {
  readonly result: SearchResult;
  readonly query: string;
  readonly standing: Standing;
}): ReactNode {
  const { id, name, type, content, truncated, score, metadata, alsoIn = [], copies } = result;
  return (
    <li className={`panel result ${standing}`}>
      <div className="scores">
        <meter min={0} max={1} value={score} aria-label={`Score ${score.toFixed(2)}`} />
        <strong className="mono">{score.toFixed(4)}</strong>
        {standing === 'given' ? null : <span className="standing">{REASONS[standing]}</span>}
      </div>
      <Explanation result={result} />
      <h3>
        <Link to="/browser" query={{ id }}>
          {visible(name)}
        </Link>
      </h3>
      <p className="quiet">
        {type}
        {typeof metadata['source'] === 'string' ? <>, {visible(metadata['source'])}</> : null}
        {typeof metadata['heading'] === 'string' && metadata['heading'] !== '' ? (
          <>, {visible(metadata['heading'])}</>
        ) : null}
      </p>
      <p className="chunk">
        {marked(visible(plainText(content)), query).map(({ at, text, isMarked }) =>
          isMarked ? <mark key={at}>{text}</mark> : text,
        )}
        {truncated === true ? <span className="quiet"> … (truncated; open it to see all of it)</span> : null}
      </p>
      {alsoIn.length === 0 ? null : (
        <p className="quiet">
          Almost the same text:{' '}
          {alsoIn.map(({ id: copy, name: title, path, source }, index) => (
            <Fragment key={copy}>
              {index > 0 ? ', ' : ''}
              <Link to="/browser" query={{ id: copy }}>
                {visible(path ?? source ?? title)}
              </Link>
            </Fragment>
          ))}
          {copies === undefined ? '' : ` and ${copies - alsoIn.length} more`}
        </p>
      )}
    </li>
  );
}

interface Piece {
  /** Its offset in the text. */
  readonly at: number;
  readonly text: string;
  readonly isMarked: boolean;
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ENDING = /(?:ations?|ings?|ed|es|s|e)$/;
/** Shorter words occur in every text; they are only marked if the query has no others. */
const MIN_WORD_LENGTH = 4;

/** Splits a text into pieces and marks the words of the query, in any form. */
function marked(text: string, query: string): Piece[] {
  const words = query.toLowerCase().match(WORD) ?? [];
  const telling = words.filter((word) => word.length >= MIN_WORD_LENGTH || /\P{ASCII}|\d/u.test(word));
  const wanted = new Set((telling.length > 0 ? telling : words).map(stem));
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!wanted.has(stem(word.toLowerCase()))) continue;
    if (index > end) pieces.push({ at: end, text: text.slice(end, index), isMarked: false });
    pieces.push({ at: index, text: word, isMarked: true });
    end = index + word.length;
  }
  if (end < text.length) pieces.push({ at: end, text: text.slice(end), isMarked: false });
  return pieces;
}

function stem(word: string): string {
  const short = word.replace(ENDING, '');
  return short.length >= 3 ? short : word;
}

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
function Explanation({ result }: { readonly result: SearchResult }): ReactNode {
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
