import type { Browser } from 'playwright-core';
import { test } from 'vitest';
import { CHROMIUM, hasChromium, sharedChromium } from './chromium.ts';
import { closeSharedPage, releaseSharedPage } from './shared-page.ts';

const say = (name: string): void =>
  void process.stderr.write(
    `NOT TESTED, because there is no ${CHROMIUM} (apt-get install chromium): ${name}\n`,
  );

/** A test that needs a real browser. Where none is installed it is skipped, and says so. */
export function browserTest(name: string, run: (browser: Browser) => Promise<void>): void {
  if (!hasChromium) say(name);
  skippable(name, run);
}

/** For files with many such tests: a `test` that says for the whole file, once, where there is no browser. */
export function sharedBrowser(file: string): { readonly browserTest: typeof browserTest } {
  if (!hasChromium) say(file);
  return { browserTest: skippable };
}

/** Each test uses the one browser of its worker. */
function skippable(name: string, run: (browser: Browser) => Promise<void>): void {
  test.skipIf(!hasChromium)(name, { timeout: 30_000 }, async () => {
    const browser = await sharedChromium();
    try {
      await run(browser);
    } catch (error) {
      await closeSharedPage();
      throw error;
    } finally {
      // What stays open goes on asking its server.
      const kept = await releaseSharedPage();
      await Promise.all(
        browser.contexts().map((context) => (context === kept ? undefined : context.close())),
      );
    }
  });
}
