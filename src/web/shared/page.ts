import type { ComponentType } from 'react';
import { currentPath } from './router.ts';

/** A page: one file, loaded when it is wanted, and one entry in the list of its application. */
export interface Page {
  readonly path: string;
  readonly title: string;
  /** The letter that goes there after `g`. */
  readonly key: string;
  readonly load: () => Promise<ComponentType>;
}

const loaded = new Map<Page, ComponentType>();

/** What a page shows, if it is there already. */
export const contentOf = (page: Page): ComponentType | undefined => loaded.get(page);

/** Rejects when the server does not have the script of the page, or does not answer. */
export async function loadPage(page: Page): Promise<void> {
  if (!loaded.has(page)) loaded.set(page, await page.load());
}

/** The page of the address, on its way before the rest of the application is there. */
export async function loadFirst(pages: readonly Page[]): Promise<void> {
  const page = pages.find(({ path }) => path === currentPath());
  // A failure shows in the page itself, which tries again.
  if (page !== undefined) await loadPage(page).catch(() => undefined);
}

/**
 * The other pages, when nothing else is to be done: going there then takes no time, and needs no server that still has
 * these scripts.
 */
export function loadOthers(pages: readonly Page[]): void {
  const next = async (): Promise<void> => {
    for (const page of pages) await loadPage(page).catch(() => undefined);
  };
  setTimeout(() => void next(), OTHERS_AFTER);
}

/** The first page asks for its data first; ms. */
const OTHERS_AFTER = 1_000;
