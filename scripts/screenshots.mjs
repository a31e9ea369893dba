// `node scripts/with-node.mjs scripts/screenshots.mjs [application]`: screenshots of every page of the browser
// applications into docs/ui, in light and dark mode and at phone width. Requires `npm run build` and Chromium.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { sharedChromium } from '../test/kit/chromium.ts';
import { root } from './run.mjs';
import { admin } from './screenshots/admin.mjs';
import { memory } from './screenshots/memory.mjs';
import { tools } from './screenshots/tools.mjs';

/**
 * Each starts a real server with sample data: `open()` returns its address, what a page shows when it is ready, and
 * `close()`.
 */
const APPLICATIONS = { admin, memory, tools };

const LOOKS = {
  light: { viewport: { width: 1000, height: 700 }, colorScheme: 'light' },
  dark: { viewport: { width: 1000, height: 700 }, colorScheme: 'dark' },
  narrow: { viewport: { width: 390, height: 780 }, colorScheme: 'light' },
};

const [only] = process.argv.slice(2);
const folder = join(root, 'docs/ui');
mkdirSync(folder, { recursive: true });
const browser = await sharedChromium();
for (const [name, application] of Object.entries(APPLICATIONS)) {
  if (only !== undefined && only !== name) continue;
  const { url, pages, close } = await application.open();
  for (const [look, options] of Object.entries(LOOKS)) {
    const context = await browser.newContext({
      ...options,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
    });
    const page = await context.newPage();
    for (const { name: shown, path, prepare } of pages) {
      await page.goto(`${url}${path}`);
      await prepare(page);
      await page.evaluate(() => document.activeElement?.blur());
      await page.screenshot({ path: join(folder, `${name}-${shown}-${look}.png`) });
    }
    await context.close();
  }
  await close();
}
await browser.close();
