import { type FormEvent, type ReactNode, useState } from 'react';
import { isRecord, jsonIn } from '../../../core/foreign.ts';
import type { ShownKey } from '../../../core/virtual-key.ts';
import { ask } from '../../shared/api.ts';
import { Command } from '../../shared/problem.tsx';
import { WithCode } from '../../shared/with-code.tsx';

interface Created {
  readonly secret: string;
  readonly key: ShownKey;
  readonly warnings: readonly string[];
}

/** A form that creates a virtual key, and shows it once. */
export function NewKey({ created }: { readonly created: () => void }): ReactNode {
  // Shown until there is another one: nobody can look it up.
  const [made, setMade] = useState<Created>();
  const [problem, setProblem] = useState<string>();
  const [isSending, setSending] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    // The second click of a double click.
    if (isSending) return;
    const form = event.currentTarget;
    const body = settingsOf(new FormData(form));
    if (typeof body === 'string') {
      setProblem(body);
      return;
    }
    setSending(true);
    ask<Created>('/api/keys', { method: 'POST', body })
      .then(
        (key) => {
          setMade(key);
          setProblem(undefined);
          form.reset();
          created();
        },
        ({ message }: Error) => setProblem(message),
      )
      .finally(() => setSending(false));
  };
  return (
    <section className="panel" aria-labelledby="new-key">
      <h2 id="new-key">New key</h2>
      <form onSubmit={submit}>
        <div className="row">
          <label className="grow">
            Name
            <input name="name" required autoComplete="off" spellCheck={false} placeholder="ann-laptop" />
          </label>
          <label className="grow">
            Team
            <input name="team" autoComplete="off" spellCheck={false} placeholder="support" />
          </label>
          <label className="grow">
            Models (empty for all)
            <input name="models" autoComplete="off" spellCheck={false} placeholder="gpt-4o-mini, claude-*" />
          </label>
          <label className="grow">
            Budgets (empty for none)
            <input name="budgets" autoComplete="off" spellCheck={false} placeholder="10USD/day" />
          </label>
          <label>
            Expires
            <input name="expires" type="date" />
          </label>
          <label className="grow">
            Metadata (JSON, for expressions)
            <input
              name="metadata"
              className="mono"
              autoComplete="off"
              spellCheck={false}
              placeholder='{"user": "ann"}'
            />
          </label>
          <button type="submit" className="primary">
            Create
          </button>
        </div>
      </form>
      {problem === undefined ? null : (
        <p role="alert" className="bad">
          ✗ <WithCode text={problem} />
        </p>
      )}
      <div role="status">
        {made === undefined ? null : (
          <>
            <p>
              <span className="good">✓</span> The key of <strong>{made.key.name}</strong>. It is not shown
              again:
            </p>
            <Command text={made.secret} />
            {made.warnings.map((warning) => (
              <p key={warning}>
                <span className="warn">!</span> <WithCode text={warning} />
              </p>
            ))}
          </>
        )}
      </div>
    </section>
  );
}

/** The body of the request, which the server checks; or what is wrong with the metadata. */
function settingsOf(form: FormData): object | string {
  const text = (name: string): string => {
    const value = form.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
  const list = (name: string): string[] =>
    text(name)
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  const [models, budgets] = [list('models'), list('budgets')];
  const metadata = text('metadata') === '' ? {} : jsonIn(text('metadata'));
  if (!isRecord(metadata)) return 'Metadata: expected a JSON object, such as `{"user": "ann"}`';
  const team = text('team');
  if (team !== '' && metadata['team'] !== undefined && metadata['team'] !== team)
    return 'Metadata: it has another `team` than the field Team';
  const all = { ...metadata, ...(team === '' ? {} : { team }) };
  return {
    name: text('name'),
    ...(Object.keys(all).length === 0 ? {} : { metadata: all }),
    ...(models.length === 0 ? {} : { allowedModels: models }),
    ...(budgets.length === 0 ? {} : { budgets }),
    ...(text('expires') === '' ? {} : { expiresAt: `${text('expires')}T23:59:59Z` }),
  };
}
