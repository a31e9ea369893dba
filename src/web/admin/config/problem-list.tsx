import type { ReactNode } from 'react';
import { visible } from '../../shared/visible.ts';
import { countText, type Fix, type Verdict } from './check.ts';

/** The validator's findings, as links to their places. */
export function ProblemList({
  verdict,
  error,
  isCurrent,
  goTo,
  apply,
}: {
  readonly verdict: Verdict | undefined;
  readonly error: Error | undefined;
  readonly isCurrent: boolean;
  readonly goTo: (offset: number) => void;
  readonly apply: (fixes: readonly Fix[]) => void;
}): ReactNode {
  const fixes = (verdict?.diagnostics ?? []).flatMap(({ fix }) => fix ?? []);
  return (
    <section className="panel problems" aria-labelledby="problems">
      <h2 id="problems">Problems</h2>
      <p role="status">
        {error !== undefined ? (
          <span className="bad">✗ {visible(error.message)}</span>
        ) : (
          <Count verdict={verdict} isCurrent={isCurrent} />
        )}
      </p>
      {fixes.length < 2 ? null : (
        <button type="button" disabled={!isCurrent} onClick={() => apply(fixes)}>
          Fix all {fixes.length}
        </button>
      )}
      <ol className="plain-list">
        {(verdict?.diagnostics ?? []).map(
          ({ severity, code, message, label, help, fix, range: { start } }) => (
            <li key={`${start.offset} ${code} ${message}`}>
              <button type="button" className="plain" onClick={() => goTo(start.offset)}>
                <span className={severity === 'error' ? 'bad' : 'warn'}>
                  {severity === 'error' ? '✗ error' : '! warning'} {code}
                </span>{' '}
                line {start.line}: {visible(message)}
              </button>
              {label === undefined && help === undefined ? null : (
                <p className="quiet">
                  {visible([label, help].filter((each) => each !== undefined).join('; '))}
                </p>
              )}
              {fix === undefined ? null : (
                <button type="button" className="fix" disabled={!isCurrent} onClick={() => apply([fix])}>
                  Fix: {visible(fix.title)}
                </button>
              )}
            </li>
          ),
        )}
      </ol>
    </section>
  );
}

function Count({
  verdict,
  isCurrent,
}: {
  readonly verdict: Verdict | undefined;
  readonly isCurrent: boolean;
}): ReactNode {
  if (verdict === undefined) return <span className="quiet">Checking …</span>;
  const { errorCount, warningCount } = verdict;
  const [tone, mark] = errorCount > 0 ? ['bad', '✗'] : warningCount > 0 ? ['warn', '!'] : ['good', '✓'];
  return (
    <>
      <span className={tone}>
        {mark} {countText(verdict)}
      </span>
      {isCurrent ? '' : ' …'}
    </>
  );
}
