// `node scripts/with-node.mjs scripts/screenshots.mjs [application[:page]]`: the screenshots of the browser applications
// that the documentation shows, into docs/ui. With `--review FOLDER`, every page into that folder instead, in light and dark
// mode at four widths, to be looked at. Requires `npm run build` and Chromium.
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
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

const HEIGHTS = { 390: 844, 820: 1180, 1440: 900, 1920: 1080 };

/** Every width in both modes. */
const REVIEWED = Object.fromEntries(
  Object.entries(HEIGHTS).flatMap(([width, height]) =>
    ['light', 'dark'].map((colorScheme) => [
      `${width}-${colorScheme}`,
      { viewport: { width: Number(width), height }, colorScheme },
    ]),
  ),
);

/** Pages with two panes, which have no room beside each other at the width of the other pictures. */
const TWO_PANES = { width: 1280, height: 760 };

const DOCUMENTED = {
  light: { viewport: { width: 1000, height: 700 }, colorScheme: 'light' },
  dark: { viewport: { width: 1000, height: 700 }, colorScheme: 'dark' },
};

/** Names of the pictures that pages show. */
const SHOWN = globSync('{*.md,docs/*.md}', { cwd: root }).flatMap((page) =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/ui\/([\w-]+\.png)/g)].map(([, name]) => name),
);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { review: { type: 'string' }, look: { type: 'string' } },
});
const [only, onlyPage] = positionals[0]?.split(':') ?? [];
const folder = values.review ?? join(root, 'docs/ui');
const looks = values.review === undefined ? DOCUMENTED : REVIEWED;
mkdirSync(folder, { recursive: true });
const browser = await sharedChromium();
for (const [name, application] of Object.entries(APPLICATIONS)) {
  if (only !== undefined && only !== name) continue;
  const { url, pages, close, prepareContext } = await application.open();
  for (const [look, options] of Object.entries(looks)) {
    if (values.look !== undefined && !look.includes(values.look)) continue;
    const context = await browser.newContext({
      ...options,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
    });
    await prepareContext?.(context);
    const page = await context.newPage();
    for (const { name: shown, path, prepare, hasTwoPanes } of pages) {
      if (onlyPage !== undefined && onlyPage !== shown) continue;
      const file = `${name}-${shown}-${look}.png`;
      if (looks === DOCUMENTED && !SHOWN.includes(file)) continue;
      const isWide = hasTwoPanes === true && looks === DOCUMENTED;
      await page.setViewportSize(isWide ? TWO_PANES : options.viewport);
      await page.goto(`${url}${path}`);
      await prepare(page);
      await page.evaluate(() => document.activeElement?.blur());
      await page.screenshot({ path: join(folder, file) });
    }
    await context.close();
  }
  await close();
}
await browser.close();
