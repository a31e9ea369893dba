import { useSyncExternalStore } from 'react';

/**
 * The location of a page: its path below the application's base, and its query. Addresses are real ones, so that they
 * can be opened, shared and reloaded; the server answers every page path with the same document.
 */
export interface Location {
  /** `/`, `/trace`, … */
  readonly path: string;
  readonly query: URLSearchParams;
}

const listeners = new Set<() => void>();
const tell = (): void => {
  for (const listener of listeners) listener();
};
const subscribe = (listener: () => void): (() => void) => {
  if (listeners.size === 0) addEventListener('popstate', tell);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) removeEventListener('popstate', tell);
  };
};

/** Base path of both applications, without a trailing slash. */
export const BASE = '/ui';

export function useLocation(): Location {
  const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const url = new URL(href, location.origin);
  return { path: pathBelowBase(url.pathname), query: url.searchParams };
}

const pathBelowBase = (pathname: string): string => pathname.slice(BASE.length).replace(/\/+$/, '') || '/';

/** Path of the current page. */
export const currentPath = (): string => pathBelowBase(location.pathname);

/** Address of a page, for links. */
export function href(path: string, query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(query).toString();
  return `${BASE}${path === '/' ? '/' : path}${search === '' ? '' : `?${search}`}`;
}

/** Navigates to a page; `replace` changes the address without a new history entry. */
export function navigate(
  path: string,
  query: Readonly<Record<string, string>> = {},
  { replace = false } = {},
): void {
  const url = href(path, query);
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  tell();
}
