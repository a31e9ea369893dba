import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { CHROMIUM, hasChromium, launchChromium } from './chromium.ts';
import { ON_REAL_SCREEN } from './retry.ts';

const say = (name: string): void =>
  void process.stderr.write(
    `NOT TESTED, because there is no ${CHROMIUM} (apt-get install chromium): ${name}\n`,
  );

/** A test that needs a real browser. Where none is installed it is skipped, and says so. */
export function browserTest(name: string, run: (browser: Browser) => Promise<void>): void {
  if (!hasChromium) {
    say(name);
    test.skip(name);
    return;
  }
  test(name, { timeout: 30_000, ...ON_REAL_SCREEN }, async () => {
    const browser = await launchChromium();
    try {
      await run(browser);
    } finally {
      await browser.close();
    }
  });
}

/**
 * For files with many such tests: one browser for all of them, and a `test` that is skipped where there is none. Each
 * test opens a context of its own.
 */
export function sharedBrowser(file: string): {
  readonly browserTest: (name: string, run: (browser: Browser) => Promise<void>) => void;
} {
  let browser: Browser;
  if (hasChromium) {
    beforeAll(async () => {
      browser = await launchChromium();
    });
    afterAll(() => browser.close());
  } else say(file);
  return {
    browserTest: (name, run) =>
      test.skipIf(!hasChromium)(name, { timeout: 30_000, ...ON_REAL_SCREEN }, async () => {
        try {
          await run(browser);
        } finally {
          // What stays open goes on asking its server.
          await Promise.all(browser.contexts().map((context) => context.close()));
        }
      }),
  };
}
