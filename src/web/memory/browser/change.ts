import { useState } from 'react';
import { ask } from '../../shared/api.ts';
import { API } from '../model.ts';

/** Changes of what agents have written. */
export function useChange(changed: () => void): {
  readonly error: Error | undefined;
  /** Sends a change of the graph; `then` runs when it is stored. */
  readonly send: (body: object, then: () => void) => void;
} {
  const [error, setError] = useState<Error>();
  const [isSending, setSending] = useState(false);
  const send = (body: object, then: () => void): void => {
    if (isSending) return;
    setSending(true);
    ask(`${API}/graph`, { method: 'POST', body })
      .then(() => {
        setError(undefined);
        then();
        changed();
      }, setError)
      .finally(() => setSending(false));
  };
  return { error, send };
}
