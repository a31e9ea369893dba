import type { ReactNode } from 'react';
import { CopyButton } from '../../shared/copy.tsx';
import { count, duration, time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { MARKS } from '../model/fields.ts';
import { dollars } from '../model/money.ts';
import { useRouteTitles } from '../model/route-titles.ts';
import { Fact } from '../parts/fact.tsx';
import { type FullRecord, outcomeOfRecord, saidIn, titleOf as titleOfRecord } from './record.ts';

/** Characters of one message that are displayed; copying includes all of them. */
const SHOWN = 100_000;

/** One recorded request: who asked what of whom, and what was said. */
export function RecordView({ id }: { readonly id: number }): ReactNode {
  const { data, error, reload } = useLoaded<FullRecord>(`/api/records/${id}`);
  if (error !== undefined && data === undefined)
    return <Problem title="This request could not be read" error={error} retry={reload} />;
  if (data === undefined) return <p className="quiet">Loading …</p>;
  return (
    <article aria-label={visible(titleOfRecord(data))}>
      <h2>{visible(titleOfRecord(data))}</h2>
      <Facts record={data} />
      <Said record={data} />
    </article>
  );
}

function Facts({ record }: { readonly record: FullRecord }): ReactNode {
  const { status, error, durationMs, key, user, provider, usedModel, target, session, route } = record;
  const { inputTokens, cachedInputTokens, outputTokens, costUsd, firstTokenMs } = record;
  const titleOf = useRouteTitles();
  const caller = user === undefined || key === undefined ? (user ?? key) : `${key} (${user})`;
  return (
    <dl className="facts">
      <Fact name="Time">
        <span className="whole">{time(record.time)}</span>
      </Fact>
      <Fact name="Status">
        <span className={outcomeOfRecord(record)}>
          {MARKS[outcomeOfRecord(record)]} {status}
        </span>
        {error === undefined ? '' : `: ${visible(error)}`}
      </Fact>
      {durationMs === undefined ? null : <Fact name="Took">{duration(durationMs)}</Fact>}
      {firstTokenMs === undefined ? null : <Fact name="First token after">{duration(firstTokenMs)}</Fact>}
      {caller === undefined ? null : <Fact name="Caller">{visible(caller)}</Fact>}
      {target === undefined ? null : <Fact name="Target">{visible(target)}</Fact>}
      {provider === undefined ? null : (
        <Fact name="Answered by">{visible([provider, usedModel].filter(Boolean).join(' '))}</Fact>
      )}
      {inputTokens === undefined && outputTokens === undefined ? null : (
        <Fact name="Tokens">
          {count(inputTokens ?? 0)} in
          {cachedInputTokens === undefined || cachedInputTokens === 0
            ? ''
            : ` (${count(cachedInputTokens)} cached)`}
          , {count(outputTokens ?? 0)} out
        </Fact>
      )}
      {costUsd === undefined ? null : <Fact name="Cost">{dollars(Number(costUsd))}</Fact>}
      {route === undefined ? null : <Fact name="Route">{titleOf(route)}</Fact>}
      {session === undefined ? null : (
        <Fact name="Session">
          <Link to="/sessions" query={{ session }}>
            Timeline of this session
          </Link>
        </Fact>
      )}
    </dl>
  );
}

function Said({ record }: { readonly record: FullRecord }): ReactNode {
  const said = saidIn(record);
  if (said.length === 0 && record.status >= 400)
    return (
      <p className="quiet">
        Nothing was recorded of what was said: the call ended before it was read. Calls that are let in have
        their messages with <code>payloads: full</code>.
      </p>
    );
  if (said.length === 0)
    return (
      <p className="quiet">
        What was said is not recorded. It is with <code>payloads: full</code> in{' '}
        <code>frontendPolicies.accessLog.database</code>.
      </p>
    );
  return (
    <ol className="plain-list said-list">
      {said.map(({ by, kind, text, isProse = false }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message is identified by its position.
        <li key={index} className={`said-by ${kind}`}>
          <div className="row bar">
            <strong>{visible(by)}</strong>
            <CopyButton text={text}>Copy</CopyButton>
          </div>
          <pre className={isProse ? 'prose' : undefined}>
            {visible(text.slice(0, SHOWN))}
            {text.length > SHOWN ? ` … and ${count(text.length - SHOWN)} characters more` : ''}
          </pre>
        </li>
      ))}
    </ol>
  );
}
