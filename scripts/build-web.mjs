// Bundles the web pages into dist/web: two small applications, each with an index.html and hashed assets.
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import react from '@vitejs/plugin-react';
import { build } from 'vite';
import { root } from './run.mjs';

/** Folder below src/web, and the path under which its server serves it. */
const APPLICATIONS = [
  ['admin', '/ui/'],
  ['memory', '/ui/'],
];

const started = performance.now();
for (const [name, base] of APPLICATIONS) {
  await build({
    configFile: false,
    logLevel: 'warn',
    root: join(root, 'src/web', name),
    base,
    plugins: [react()],
    build: {
      outDir: join(root, 'dist/web', name),
      emptyOutDir: true,
      target: 'es2022',
      // Inlined assets would need `data:` in the content security policy.
      assetsInlineLimit: 0,
      // Vite's preload helper is an inline-free module; the polyfill is for browsers that we do not support.
      modulePreload: { polyfill: false },
    },
  });
}
process.stderr.write(`ok  web pages  (${((performance.now() - started) / 1000).toFixed(1)} s)\n`);
