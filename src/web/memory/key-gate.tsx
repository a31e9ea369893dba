import { type FormEvent, type ReactNode, useCallback, useEffect, useState } from 'react';
import { type ApiError, ask, sendAlways } from '../shared/api.ts';
import {
  callerHeaders,
  DEFAULT_NAMESPACE,
  storedKey,
  storedNamespace,
  storeKey,
  storeNamespace,
} from './key.ts';
import { API } from './model.ts';

/** Asks for the key of the backend, if it has one, before anything else is displayed. */
export function KeyGate({ children }: { readonly children: ReactNode }): ReactNode {
  const [state, setState] = useState<'trying' | 'open' | 'closed'>('trying');
  const [problem, setProblem] = useState('');
  const tryKey = useCallback((key: string | null): void => {
    sendAlways(callerHeaders(key));
    ask(`${API}/ingest/status`).then(
      () => {
        if (key !== null) storeKey(key);
        setState('open');
      },
      ({ status, message }: ApiError) => {
        const again = (namespace: string | null): void => {
          storeNamespace(namespace);
          tryKey(key);
        };
        // A namespace's key accepts no other namespace.
        // The pages report a backend that does not respond.
        if (status === 403 && storedNamespace() !== null) return again(null);
        // With MEMORY_NAMESPACES=required.
        if (status === 400 && storedNamespace() === null) return again(DEFAULT_NAMESPACE);
        if (status !== 401) return setState('open');
        storeKey(null);
        setProblem(key === null ? '' : message);
        setState('closed');
      },
    );
  }, []);
  useEffect(() => tryKey(storedKey()), [tryKey]);
  if (state === 'open') return children;
  if (state === 'trying')
    return (
      <main>
        <p role="status">Loading…</p>
      </main>
    );
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get('key');
    if (typeof key !== 'string' || key.trim() === '') return;
    // A header accepts no other characters.
    if (/^[\x21-\x7e]+$/.test(key.trim())) tryKey(key.trim());
    else setProblem('a key contains only letters, digits and punctuation');
  };
  return (
    <main>
      <h1>A key is required</h1>
      <form className="panel" onSubmit={submit}>
        <p>
          It is the value of <code>MEMORY_API_KEY</code> that the backend was started with, or the key of a
          namespace. This tab keeps it until it is closed.
        </p>
        <div className="row">
          <label>
            Key
            {/* biome-ignore lint/a11y/noAutofocus: the only action on this page. */}
            <input name="key" type="password" autoComplete="off" required autoFocus />
          </label>
          <button type="submit" className="primary">
            Open
          </button>
        </div>
        <p role="alert" className="bad">
          {problem === '' ? '' : `✗ ${problem}`}
        </p>
      </form>
    </main>
  );
}
