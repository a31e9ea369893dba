// Kept as long as the tab, and never part of an address.
const KEY = 'agctl-memory-key';
const NAMESPACE = 'agctl-memory-namespace';

/** The namespace of calls that name none. */
export const DEFAULT_NAMESPACE = 'default';
export const NAMESPACE_HEADER = 'x-memory-namespace';

/** The key of the backend that was entered in this tab. */
export const storedKey = (): string | null => sessionStorage.getItem(KEY);
export const storeKey = (key: string | null): void => store(KEY, key);

/** The namespace that was chosen in this tab; null leaves it to the backend, for which a key may decide it. */
export const storedNamespace = (): string | null => sessionStorage.getItem(NAMESPACE);
export const storeNamespace = (name: string | null): void => store(NAMESPACE, name);

function store(item: string, value: string | null): void {
  if (value === null) sessionStorage.removeItem(item);
  else sessionStorage.setItem(item, value);
}

/** Headers with the key and the chosen namespace. */
export function callerHeaders(key: string | null): Readonly<Record<string, string>> {
  const namespace = storedNamespace();
  return {
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...(namespace === null ? {} : { [NAMESPACE_HEADER]: namespace }),
  };
}
