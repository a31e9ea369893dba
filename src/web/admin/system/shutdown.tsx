import { type FormEvent, type ReactNode, useRef, useState } from 'react';
import { ask } from '../../shared/api.ts';
import { say } from '../../shared/toasts.tsx';

const WORD = 'shutdown';

/** Stops the gateway, after a confirmation, because it cannot be started again from here. */
export function Shutdown(): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    dialog.current?.close();
    say({ text: 'The gateway stops as soon as its open requests have finished' });
    ask('/quitquitquit', { method: 'POST' }).catch((error: Error) =>
      say({ text: error.message, isBad: true }),
    );
  };
  return (
    <section className="panel" aria-labelledby="stop">
      <h2 id="stop">Stop the gateway</h2>
      <p>Open requests finish first; new ones are rejected. It cannot be started again from here.</p>
      <button
        type="button"
        onClick={() => {
          setTyped('');
          dialog.current?.showModal();
        }}
      >
        Stop …
      </button>
      <dialog ref={dialog} aria-labelledby="stop-title">
        <form onSubmit={submit}>
          <h2 id="stop-title">Stop the gateway?</h2>
          <label>
            Type <strong>{WORD}</strong> to confirm
            <input
              type="text"
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </label>
          <div className="row">
            <button type="submit" disabled={typed.trim() !== WORD}>
              Stop it
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </div>
        </form>
      </dialog>
    </section>
  );
}
