import type { ReactNode } from 'react';
import { createStore } from '../../shared/store.ts';

// Kept in the memory of this page only: it is not stored, and a reload clears it.
const token = createStore('');

export const useToken = token.use;

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
        onChange={(event) => token.set(event.target.value.trim())}
      />
    </label>
  );
}
