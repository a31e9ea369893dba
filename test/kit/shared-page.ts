import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext, Page } from 'playwright-core';

// A new context and page cost 1.5 s of CPU time: Chromium starts four processes, and nothing of the application is
// cached. So tests of a worker use one page after another, which is reset in between.

/** What a test may ask of its page. */
export interface PageOptions {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly reducedMotion?: 'reduce' | 'no-preference';
}

const DEFAULTS = { viewport: { width: 1280, height: 720 }, reducedMotion: 'reduce' } as const;

interface Shared {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Address of an empty page on the host of all tests: Chromium needs no other process for it. */
  readonly empty: string;
}

let shared: Shared | undefined;
let isInUse = false;

/** The page of this worker, as if it were new; undefined while another test or this one uses it. */
export async function sharedPage(browser: Browser, options: PageOptions = {}): Promise<Page | undefined> {
  if (isInUse) return undefined;
  isInUse = true;
  if (shared?.context.browser() !== browser || shared.page.isClosed()) shared = undefined;
  shared ??= await open(browser);
  const { viewport, reducedMotion } = { ...DEFAULTS, ...options };
  await shared.page.setViewportSize(viewport);
  await shared.page.emulateMedia({ reducedMotion, colorScheme: null });
  return shared.page;
}

/** A page that no other test gets, for what cannot be undone, such as a page's clock. */
export async function ownPage(browser: Browser, options: PageOptions = {}): Promise<Page> {
  const context = await browser.newContext({ ...DEFAULTS, ...options });
  return context.newPage();
}

async function open(browser: Browser): Promise<Shared> {
  const page = await ownPage(browser);
  return { page, context: page.context(), empty: await emptyPage() };
}

/** Takes the page back from a test that has ended, if it can be used again, and gives its context. */
export async function releaseSharedPage(): Promise<BrowserContext | undefined> {
  isInUse = false;
  if (shared === undefined) return undefined;
  try {
    await reset(shared);
    return shared.context;
  } catch {
    await closeSharedPage();
    return undefined;
  }
}

/** The next test gets a new one. */
export async function closeSharedPage(): Promise<void> {
  const { context } = shared ?? {};
  shared = undefined;
  await context?.close();
}

async function reset({ page, context, empty }: Shared): Promise<void> {
  context.removeAllListeners('request');
  for (const event of ['request', 'pageerror', 'console']) page.removeAllListeners(event);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  for (const other of context.pages()) if (other !== page) await other.close();
  // The page's own scripts run no more once another page is shown, which has the storage of another origin.
  await page.evaluate('localStorage.clear(); sessionStorage.clear()');
  await page.goto(empty);
  await context.clearCookies();
  await context.clearPermissions();
}

let emptyUrl: Promise<string> | undefined;

function emptyPage(): Promise<string> {
  emptyUrl ??= new Promise((resolve, reject) => {
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>empty</title>');
    });
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      server.unref();
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    });
  });
  return emptyUrl;
}
