// `npm run bench web`: what a browser has to load for the pages, how soon they are usable, and how smoothly the graph
// moves. Requires `npm run build` and Chromium. `-- --only memory` measures one application.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { sharedChromium } from '../test/kit/chromium.ts';
import { root } from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { median } from './harness/rounds.mjs';
import { admin } from './web/admin.mjs';
import { memory } from './web/memory.mjs';

/**
 * Folder below dist/web, and what is measured there: `open()` starts a real server and returns `url`, `start` (page and
 * what is visible when it is usable), `more(browser)` (further lines) and `close()`.
 */
const APPLICATIONS = { admin, memory };
const ROUNDS = 7;

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const browser = await sharedChromium();
const rows = [];
const lines = [];
for (const [name, application] of Object.entries(APPLICATIONS)) {
  if (values.only !== undefined && values.only !== name) continue;
  const opened = await application.open();
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await timeToUse(opened));
  rows.push([
    name,
    `${(firstLoad(name) / 1024).toFixed(1)} KiB`,
    `${median(times).toFixed(0)} ms`,
    `${Math.min(...times).toFixed(0)}–${Math.max(...times).toFixed(0)}`,
  ]);
  lines.push(...(await opened.more(browser)));
  await opened.close();
}
await browser.close();
process.stdout.write(
  `${table(['', 'first load, gzip', 'to use', 'range'], rows)}\n\n${lines.join('\n')}\n
First load: the document and what it names. To use: from asking for the address in an empty context until data of the
server is drawn, by the page's clock; headless Chromium ${browser.version()}, without a graphics card.\n`,
);

/** Compressed bytes of the document and of the scripts and style sheets that it references. */
function firstLoad(name) {
  const folder = join(root, 'dist/web', name);
  const html = readFileSync(join(folder, 'index.html'), 'utf8');
  const files = [...html.matchAll(/(?:src|href)="\/ui\/([^"]+\.(?:js|css))"/g)].map(([, path]) => path);
  return ['index.html', ...files].reduce(
    (sum, path) => sum + gzipSync(readFileSync(join(folder, path)), { level: 9 }).length,
    0,
  );
}

/**
 * Time from the request until data of the server is displayed, by the clock of the page itself: the process that
 * controls the browser has delays of its own.
 */
async function timeToUse({ url, start }) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(noteWhenShown, start.shows);
  await page.goto(`${url}${start.path}`, { waitUntil: 'commit' });
  const time = await page.evaluate(() => globalThis.shown);
  await context.close();
  return time;
}

function noteWhenShown(text) {
  globalThis.shown = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (document.body?.textContent.includes(text) !== true) return;
      observer.disconnect();
      // The frame in which it is drawn.
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now()), 0));
    });
    observer.observe(document, { childList: true, characterData: true, subtree: true });
  });
}
