import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import { MEMORY_API_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { navigate, useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { deleteLater, useDeletions } from '../deletions.ts';
import { amountOf, ErasureList } from '../erasure.tsx';
import { API, type Erasure } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';

/** Deletes everything that mentions a name or text, after a preview of exactly that. */
export function Forget(): ReactNode {
  const { query } = useLocation();
  const about = query.get('about') ?? '';
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get('about')).trim();
    navigate('/forget', text === '' ? {} : { about: text });
  };
  return (
    <>
      <form key={`about ${about}`} className="row" onSubmit={submit}>
        <label className="wide">
          Forget everything about
          <input
            data-filter
            name="about"
            type="search"
            required
            minLength={2}
            maxLength={MEMORY_API_LIMITS.nameLength}
            defaultValue={about}
          />
        </label>
        <button type="submit" className="primary">
          Preview
        </button>
      </form>
      {about === '' ? (
        <p className="quiet">
          A name or text. Finds entities, observations, turns and documents that mention it, in any case, and
          shows them before anything is deleted.
        </p>
      ) : (
        <Preview key={about} about={about} />
      )}
    </>
  );
}

function Preview({ about }: { readonly about: string }): ReactNode {
  const [erasure, setErasure] = useState<Erasure>();
  const [error, setError] = useState<Error>();
  const [round, setRound] = useState(0);
  const reload = (): void => setRound((rounds) => rounds + 1);
  useEffect(() => {
    // A change of it starts the effect again.
    void round;
    const gone = new AbortController();
    ask<Erasure>(`${API}/forget`, {
      method: 'POST',
      body: { about, preview: true },
      signal: gone.signal,
    }).then(
      (found) => {
        setErasure(found);
        setError(undefined);
      },
      (problem: Error) => gone.signal.aborted || setError(problem),
    );
    return () => gone.abort();
  }, [about, round]);
  const key = `forget ${about}`;
  const hidden = useDeletions(erasure, reload);
  if (error !== undefined) return <Unreachable error={error} retry={reload} />;
  if (erasure === undefined) return <p role="status">Searching…</p>;
  const amount = amountOf(erasure);
  if (hidden.has(key)) return <p role="status">Deleted, unless you undo it: {amount}.</p>;
  if (amount === '') return <p role="status">Nothing stored mentions “{visible(about)}”.</p>;
  return (
    <section className="panel problem" aria-labelledby="forget">
      <h2 id="forget">{amount}</h2>
      <ErasureList erasure={erasure} />
      <div className="row">
        <button
          type="button"
          className="danger"
          onClick={() =>
            deleteLater({
              key,
              what: `everything about “${visible(about)}”: ${amount}`,
              path: `${API}/forget`,
              method: 'POST',
              body: { about, token: erasure.token },
            })
          }
        >
          Forget all of this
        </button>
        <button type="button" onClick={reload}>
          Look again
        </button>
      </div>
    </section>
  );
}
