import { existsSync } from 'node:fs';
import type { Browser } from 'playwright-core';

/** Where Debian and Ubuntu put it. */
export const CHROMIUM = '/usr/bin/chromium';

/**
 * Chromium 156 draws the hidden pages of its address bar (`chrome://omnibox-popup.top-chrome/`) all the time, also while
 * a page does nothing: half a processor for each browser. Only the last list on a command line counts, so this one
 * repeats what of Playwright's list matters here.
 */
const DISABLED_FEATURES = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
];

// Root may not use the sandbox; without the other flags Chromium looks for hosts of its maker at every start.
const FLAGS = [
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
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
