import type { ComponentType } from 'react';
import { currentPath } from './router.tsx';

/** A page: one file, loaded on demand, and one entry in the list of its application. */
export interface Page {
  readonly path: string;
  readonly title: string;
  /** Heading in the navigation. */
  readonly group?: string;
  /** The key that opens it after `g`. */
  readonly key: string;
  readonly load: () => Promise<ComponentType>;
}

const loaded = new Map<Page, ComponentType>();

/** The content of a page, if it is loaded. */
export const contentOf = (page: Page): ComponentType | undefined => loaded.get(page);

/** Rejects if the server does not have the script of the page, or does not respond. */
export async function loadPage(page: Page): Promise<void> {
  if (!loaded.has(page)) loaded.set(page, await page.load());
}

/** Starts loading the page of the address before the rest of the application. */
export async function loadFirst(pages: readonly Page[]): Promise<void> {
  const page = pages.find(({ path }) => path === currentPath());
  // The page itself displays a failure and tries again.
  if (page !== undefined) await loadPage(page).catch(() => undefined);
}

/**
 * Loads the other pages when the browser is idle: opening them then takes no time, and works after an update of the
 * server.
 */
export function loadOthers(pages: readonly Page[]): void {
  const next = async (): Promise<void> => {
    for (const page of pages) await loadPage(page).catch(() => undefined);
  };
  setTimeout(() => void next(), OTHERS_AFTER);
}

/** Delay in ms, so that the first page loads its data first. */
const OTHERS_AFTER = 1_000;
