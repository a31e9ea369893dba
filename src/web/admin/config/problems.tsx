import { type ReactNode, useEffect, useState } from 'react';
import { ApiError } from '../../shared/api.ts';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';

/** One problem from the validator, with its place in the text on the page. */
interface Found {
  readonly severity: 'error' | 'warning' | 'note';
  readonly code: string;
  readonly message: string;
  readonly label?: string;
  readonly help?: string;
  readonly range: { readonly start: Position; readonly end: Position };
  readonly fix?: Fix;
}

/** Edits of the text that fix a problem. */
export interface Fix {
  readonly title: string;
  readonly edits: readonly {
    readonly range: { readonly start: Position; readonly end: Position };
    readonly text: string;
  }[];
}

interface Position {
  readonly line: number;
  readonly column: number;
  readonly offset: number;
}

interface Verdict {
  readonly errorCount: number;
  readonly warningCount: number;
  readonly diagnostics: readonly Found[];
}

/** Delay after a keystroke before the text is validated, in ms. */
const VALIDATION_DELAY = 300;

/** The validator's report on the text, updated shortly after it has changed. */
export function useVerdict(text: string | undefined): {
  readonly verdict: Verdict | undefined;
  readonly error: Error | undefined;
  readonly isCurrent: boolean;
} {
  const [state, setState] = useState<{ text: string; verdict?: Verdict; error?: Error }>();
  useEffect(() => {
    if (text === undefined) return;
    const gone = new AbortController();
    const timer = setTimeout(() => {
      check(text, gone.signal).then(
        (verdict) => setState({ text, verdict }),
        (error: Error) => {
          if (!gone.signal.aborted) setState({ text, error });
        },
      );
    }, VALIDATION_DELAY);
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [text]);
  return { verdict: state?.verdict, error: state?.error, isCurrent: state?.text === text };
}

async function check(text: string, signal: AbortSignal): Promise<Verdict> {
  const response = await fetch('/api/config/validate', { method: 'POST', body: text, signal }).catch(
    (error: unknown) => {
      if (signal.aborted) throw error;
      throw new ApiError(`${location.origin} does not answer. Is it still running?`);
    },
  );
  if (!response.ok) throw new ApiError((await response.text()).trim(), response.status);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- pages and server are of one package
  return (await response.json()) as Verdict;
}

/** `2 errors, 1 warning`. */
function countText({ errorCount, warningCount }: Verdict): string {
  const of = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;
  if (errorCount + warningCount === 0) return 'No problems';
  if (errorCount === 0) return of(warningCount, 'warning');
  return warningCount === 0
    ? of(errorCount, 'error')
    : `${of(errorCount, 'error')}, ${of(warningCount, 'warning')}`;
}

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
                <span className={severity === 'error' ? 'bad' : severity === 'note' ? 'quiet' : 'warn'}>
                  {severity === 'error' ? '✗ error' : severity === 'note' ? 'note' : '! warning'} {code}
                </span>{' '}
                line {start.line}: <WithCode text={message} />
              </button>
              {label === undefined && help === undefined ? null : (
                <p className="quiet">
                  <WithCode text={[label, help].filter((each) => each !== undefined).join('; ')} />
                </p>
              )}
              {fix === undefined ? null : (
                <button type="button" className="fix" disabled={!isCurrent} onClick={() => apply([fix])}>
                  Fix: <WithCode text={fix.title} />
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
