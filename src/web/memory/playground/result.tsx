import type { ReactNode } from 'react';
import { Link } from '../../shared/link.tsx';
import { visible } from '../../shared/visible.ts';
import type { SearchResult } from '../model.ts';
import { marked } from './marks.ts';

/** One result: its score, its source, and its text with the words of the query marked. */
export function Result({
  result,
  query,
  standing,
}: {
  readonly result: SearchResult;
  readonly query: string;
  /** `below`: under the threshold. `crowded`: above it, but not within the limit. */
  readonly standing: 'given' | 'crowded' | 'below';
}): ReactNode {
  const { id, name, type, content, truncated, score, cosine, lexical, metadata } = result;
  return (
    <li className={`panel result ${standing}`}>
      <div className="scores">
        <meter min={0} max={1} value={score} aria-label={`Score ${score.toFixed(2)}`} />
        <strong className="mono">{score.toFixed(4)}</strong>
        <span className="quiet">
          cosine {cosine.toFixed(4)}
          {lexical === undefined ? '' : `, words ${lexical.toFixed(2)}`}
        </span>
        {standing === 'given' ? null : (
          <span className="standing">{standing === 'below' ? 'below minScore' : 'beyond the limit'}</span>
        )}
      </div>
      <h3>
        <Link to="/graph" query={{ entity: id }}>
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
        {marked(visible(content), query).map(({ at, text, isMarked }) =>
          isMarked ? <mark key={at}>{text}</mark> : text,
        )}
        {truncated === true ? <span className="quiet"> … (truncated; the graph shows all of it)</span> : null}
      </p>
    </li>
  );
}
