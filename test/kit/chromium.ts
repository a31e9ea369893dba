import { existsSync } from 'node:fs';
import type { Browser } from 'playwright-core';

/** Where Debian and Ubuntu put it. */
export const CHROMIUM = '/usr/bin/chromium';

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

export const hasChromium = existsSync(CHROMIUM);

let running: Promise<Browser> | undefined;

/**
 * A real browser without a window, one for all files of a worker. Nobody closes it: it ends with its worker. Each test
 * closes the contexts that it opened.
 */
export async function sharedChromium(): Promise<Browser> {
  running ??= launch();
  const browser = await running;
  if (browser.isConnected()) return browser;
  running = undefined;
  return sharedChromium();
}

async function launch(): Promise<Browser> {
  const { chromium } = await import('playwright-core');
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
