import { type MouseEvent, type ReactNode, useSyncExternalStore } from 'react';

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
const BASE = '/ui';

export function useLocation(): Location {
  const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const url = new URL(href, location.origin);
  return { path: pathBelowBase(url.pathname), query: url.searchParams };
}

const pathBelowBase = (pathname: string): string => pathname.slice(BASE.length).replace(/\/+$/, '') || '/';

/** Path of the current page. */
export const currentPath = (): string => pathBelowBase(location.pathname);

/** Address of a page, for links. */
function href(path: string, query: Readonly<Record<string, string>> = {}): string {
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

/** Changes parts of the query of the current page, so that a link to it shows the same. Empty ones are left out. */
export function changeQuery(query: URLSearchParams, change: Readonly<Record<string, string>>): void {
  const next = Object.entries({ ...Object.fromEntries(query), ...change }).filter(([, text]) => text !== '');
  navigate(currentPath(), Object.fromEntries(next), { replace: true });
}

interface LinkProps {
  readonly to: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly current?: boolean;
  readonly className?: string;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A link to another page of the application: a real one, so that it can be opened in a new tab. */
export function Link({ to, query = {}, current = false, className, title, children }: LinkProps): ReactNode {
  const onClick = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to, query);
  };
  return (
    <a
      href={href(to, query)}
      onClick={onClick}
      aria-current={current ? 'page' : undefined}
      {...(className === undefined ? {} : { className })}
      {...(title === undefined ? {} : { title })}
    >
      {children}
    </a>
  );
}
