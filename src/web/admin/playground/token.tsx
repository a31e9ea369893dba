import { type ReactNode, useSyncExternalStore } from 'react';

// In the memory of this page alone: nothing is stored, and a reload forgets it.
let token = '';
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useToken = (): string => useSyncExternalStore(subscribe, () => token);

/** Headers for that token. */
export function authorization(value: string): Readonly<Record<string, string>> {
  return value === '' ? {} : { authorization: `Bearer ${value}` };
}

/** A bearer token for the gateway, shared by both playgrounds. */
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
