import { type FormEvent, type ReactNode, useId, useRef, useState } from 'react';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { selectResults } from '../../../core/search-results.ts';
import { ask } from '../../shared/api.ts';
import { CopyButton } from '../../shared/copy.tsx';
import { counted, duration } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import { API, type SearchReply, type SearchResult } from '../model.ts';
import { curl, Empty, toolCall, Unreachable } from '../placeholder.tsx';
import { Result, type Standing } from '../playground/result.tsx';

interface Answer {
  readonly query: string;
  readonly reply: SearchReply;
  /** Time until the page received it, in ms. */
  readonly tookMs: number;
}

/** Results of `search_knowledge`, and the effect of another `minScore`. */
export function Playground(): ReactNode {
  const [limit, setLimit] = useState(5);
  const [minScore, setMinScore] = useState(0.7);
  const [answer, setAnswer] = useState<Answer>();
  const [error, setError] = useState<Error>();
  const [isAsking, setAsking] = useState(false);
  const asked = useRef('');
  const run = (): void => {
    const query = asked.current;
    const startedAt = performance.now();
    setAsking(true);
    // One call loads everything that could be displayed, so that the threshold can be moved without another one.
    ask<SearchReply>(`${API}/search`, {
      method: 'POST',
      body: { query, limit: MEMORY_STORE_LIMITS.results, minScore: 0, debug: true },
    })
      .then(
        (reply) => {
          setAnswer({ query, reply, tookMs: performance.now() - startedAt });
          setError(undefined);
        },
        (problem: Error) => setError(problem),
      )
      .finally(() => setAsking(false));
  };
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    asked.current = String(new FormData(event.currentTarget).get('query')).trim();
    if (asked.current !== '') run();
  };
  return (
    <>
      <form className="row" onSubmit={submit}>
        <label className="wide">
          Query
          <input
            data-filter
            name="query"
            type="search"
            required
            maxLength={MEMORY_STORE_LIMITS.queryLength}
          />
        </label>
        <label>
          limit
          <input
            type="number"
            min={1}
            max={MEMORY_STORE_LIMITS.results}
            value={limit}
            onChange={(event) =>
              setLimit(
                Math.min(
                  MEMORY_STORE_LIMITS.results,
                  Math.max(1, Math.trunc(event.target.valueAsNumber) || 1),
                ),
              )
            }
          />
        </label>
        <Threshold value={minScore} change={setMinScore} />
        <button type="submit" className="primary" aria-disabled={isAsking}>
          Search
        </button>
      </form>
      {error === undefined ? null : <Unreachable error={error} retry={run} />}
      {answer === undefined ? (
        <p className="quiet">
          Ask what an agent would ask. Results below the threshold remain visible, in gray, so that you see
          the effect of another threshold.
        </p>
      ) : (
        <Results answer={answer} limit={limit} minScore={minScore} />
      )}
    </>
  );
}

function Threshold({
  value,
  change,
}: {
  readonly value: number;
  readonly change: (value: number) => void;
}): ReactNode {
  const id = useId();
  return (
    <div className="threshold">
      <label htmlFor={id}>minScore</label>
      <span>
        <input
          id={id}
          type="range"
          min={0}
          max={1}
          step={0.01}
          value={value}
          onChange={(event) => change(event.target.valueAsNumber)}
        />
        <output htmlFor={id} className="mono">
          {value.toFixed(2)}
        </output>
      </span>
    </div>
  );
}

function Results({
  answer: { query, reply, tookMs },
  limit,
  minScore,
}: {
  readonly answer: Answer;
  readonly limit: number;
  readonly minScore: number;
}): ReactNode {
  const { results, hint } = reply;
  if (results.length === 0)
    return (
      <Empty
        title="Nothing matches"
        call={toolCall('ingest_document', {
          title: 'First note',
          content: '# First note\n\nAgents find this.',
        })}
      >
        {hint === undefined ? 'The backend has no result at all.' : `The backend says: ${visible(hint)}.`} To
        store something, an agent calls:
      </Empty>
    );
  const passed = results.filter(({ score }) => score >= minScore);
  const given = new Set(selectResults(passed, limit, ({ id, metadata }) => metadata['source'] ?? id));
  const below = results.length - passed.length;
  const args = { query, limit, minScore };
  return (
    <>
      <p role="status">
        {counted(given.size, 'result')} at minScore {minScore.toFixed(2)}
        {passed.length > given.size ? `, ${passed.length - given.size} more not returned` : ''}
        {below > 0
          ? `, ${below} more below it, the best with ${results[passed.length]?.score.toFixed(2)}`
          : ''}
        .
      </p>
      <p className="quiet">
        Backend {duration(reply.tookMs)}, including the request {duration(tookMs)}. Embedder {reply.embedder}.
      </p>
      <div className="row">
        <CopyButton text={() => toolCall('search_knowledge', args)}>Copy MCP tool call</CopyButton>
        <CopyButton text={() => curl('/search', args)}>Copy curl</CopyButton>
        <CopyButton
          text={() =>
            JSON.stringify(
              results.filter((one) => given.has(one)),
              null,
              2,
            )
          }
        >
          Copy JSON
        </CopyButton>
      </div>
      <ol className="results">
        {results.map((result) => (
          <Result
            key={result.id}
            result={result}
            query={query}
            standing={standingOf(result, results, given, minScore)}
          />
        ))}
      </ol>
    </>
  );
}

/** How search treats a result: `repeated` ones give way to results of other documents, even with a lower score. */
function standingOf(
  result: SearchResult,
  results: readonly SearchResult[],
  given: ReadonlySet<SearchResult>,
  minScore: number,
): Standing {
  if (given.has(result)) return 'given';
  if (result.score < minScore) return 'below';
  const later = results.slice(results.indexOf(result));
  return later.some((one) => given.has(one)) ? 'repeated' : 'crowded';
}
