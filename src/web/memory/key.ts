/** Kept as long as the tab, and never part of an address. */
const STORED = 'agctl-memory-key';

/** The key of the backend that was entered in this tab. */
export const storedKey = (): string | null => sessionStorage.getItem(STORED);

export function storeKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(STORED);
  else sessionStorage.setItem(STORED, key);
}

/** Headers with the key. */
export function keyHeaders(key: string | null): Readonly<Record<string, string>> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}
