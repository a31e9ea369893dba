import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { test } from 'vitest';

const EXECUTABLE = '/usr/bin/chromium';

// Root may not use the sandbox; without the other flags Chromium looks for hosts of its maker at every start.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A test that needs a real browser. Where none is installed it is skipped, and says so. */
export function browserTest(name: string, run: (browser: Browser) => Promise<void>): void {
  if (!existsSync(EXECUTABLE)) {
    console.warn(`NOT TESTED, because there is no ${EXECUTABLE} (apt-get install chromium): ${name}`);
    test.skip(name);
    return;
  }
  test(name, { timeout: 30_000 }, async () => {
    const browser = await chromium.launch({ executablePath: EXECUTABLE, args: FLAGS });
    try {
      await run(browser);
    } finally {
      await browser.close();
    }
  });
}
