import { type ReactNode, useSyncExternalStore } from 'react';

// Kept in the memory of this page only: it is not stored, and a reload clears it.
let token = '';
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useToken = (): string => useSyncExternalStore(subscribe, () => token);

/** Headers with that token. */
export function authorization(value: string): Readonly<Record<string, string>> {
  return value === '' ? {} : { authorization: `Bearer ${value}` };
}

/** Input for a bearer token, shared by both playgrounds. */
export function TokenField(): ReactNode {
  const value = useToken();
  return (
    <label className="grow">
      Bearer token, kept in this page only
      <input
        type="password"
        autoComplete="off"
        value={value}
        onChange={(event) => {
          token = event.target.value.trim();
          for (const listener of listeners) listener();
        }}
      />
    </label>
  );
}
