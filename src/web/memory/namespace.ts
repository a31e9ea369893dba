import { useSyncExternalStore } from 'react';
import { sendAlways } from '../shared/api.ts';
import { currentPath, navigate } from '../shared/router.tsx';
import { settleToasts } from '../shared/toasts.tsx';
import { callerHeaders, DEFAULT_NAMESPACE, storedKey, storedNamespace, storeNamespace } from './key.ts';

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const chosen = (): string => storedNamespace() ?? DEFAULT_NAMESPACE;

/** The namespace that the pages show. */
export function useNamespace(): string {
  return useSyncExternalStore(subscribe, chosen);
}

/** Shows another namespace, without what the address names in the former one. */
export function chooseNamespace(name: string): void {
  // Deletions belong to the former namespace.
  settleToasts();
  storeNamespace(name);
  sendAlways(callerHeaders(storedKey()));
  navigate(currentPath());
  for (const listener of listeners) listener();
}
