import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, ConsoleMessage, Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import { built } from './built.ts';
import { ownPage, type PageOptions, sharedPage } from './shared-page.ts';

/** The built memory dashboard. */
export const MEMORY_PAGES = built('web/memory');

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

export interface WatchedPage {
  readonly page: Page;
  /** Addresses of other hosts that were asked, in order. */
  readonly elsewhere: readonly string[];
  /** What scripts failed with, and what the content security policy refused. */
  readonly problems: readonly string[];
}

/**
 * A page that notes what it should not do: the shared one of this worker, or one of its own if that is in use or the
 * test asks for it.
 */
export async function watchedPage(
  browser: Browser,
  url: string,
  { isOwn = false, ...options }: PageOptions & { readonly isOwn?: boolean } = {},
): Promise<WatchedPage> {
  const shared = isOwn ? undefined : await sharedPage(browser, options);
  const page = shared ?? (await ownPage(browser, options));
  page.setDefaultTimeout(15_000);
  const elsewhere: string[] = [];
  const problems: string[] = [];
  page.context().on('request', (request: Request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('blob:')) elsewhere.push(request.url());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message: ConsoleMessage) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(message.text());
  });
  return { page, elsewhere, problems };
}

/** No rule that axe calls serious or critical may be broken, in the light theme or the dark one. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(readFileSync(AXE, 'utf8'));
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await broken(page, ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']);
  // Themes differ in colours alone.
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await broken(page, ['cat.color']);
  expect({ light, dark }).toEqual({ light: [], dark: [] });
}

/** Level AAA, which the tag for colours includes. */
const ENHANCED = 'color-contrast-enhanced';

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function broken(page: Page, tags: readonly string[]): Promise<string[]> {
  const violations = (await page.evaluate(
    `axe.run({ runOnly: ${JSON.stringify(tags)}, resultTypes: ['violations'] }).then((found) => found.violations)`,
  )) as readonly Violation[];
  return violations
    .filter(({ id, impact }) => (impact === 'serious' || impact === 'critical') && id !== ENHANCED)
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
    );
}
