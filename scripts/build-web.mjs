// Bundles the web pages into dist/web: two small applications, each with an index.html and hashed assets.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { build } from 'vite';
import { root } from './run.mjs';

/** Folder below src/web, and the path under which its server serves it. */
const APPLICATIONS = [
  ['admin', '/ui/'],
  ['memory', '/ui/'],
];

/**
 * Scripts that the document references in addition to the first, small one, so that they are loaded in parallel: the
 * application, and the page that most addresses lead to.
 */
const AT_ONCE = ['/app.tsx', '/pages/overview.tsx'];

/**
 * A request costs a browser more than a few unused kilobytes, so the first script's dependencies are one file, and so
 * is code shared by pages.
 */
const FILES = [
  {
    name: 'first',
    priority: 2,
    test: /shared\/(api|page|router|event-stream|theme)\.ts|core\/limits\.ts|model\/(requests|paths)\.ts|(admin|memory)\/pages\.ts|memory\/(key|model)\.ts|vite\/preload-helper|rolldown.runtime|node_modules\/(react|eventsource-parser)\//,
  },
  {
    name: 'app',
    priority: 1,
    test: /node_modules\/(react-dom|scheduler)\/|web\/shared\/(?!chart|plot|virtual-table|tabs)[\w-]+\.tsx?|admin\/(model|parts)\/|pages\/overview\.tsx|web\/\w+\/(app|frame|key-gate)\.tsx/,
  },
];

const namesAtOnce = {
  name: 'names-at-once',
  transformIndexHtml: {
    order: 'post',
    handler(html, { bundle = {} }) {
      const wanted = new Set();
      const add = (fileName) => {
        const chunk = bundle[fileName];
        if (chunk?.type !== 'chunk' || wanted.has(fileName)) return;
        wanted.add(fileName);
        chunk.imports.forEach(add);
      };
      for (const { type, fileName, moduleIds } of Object.values(bundle))
        if (type === 'chunk' && moduleIds.some((id) => AT_ONCE.some((path) => id.endsWith(path))))
          add(fileName);
      return [...wanted]
        .filter((fileName) => !html.includes(fileName))
        .map((fileName) => ({
          tag: 'link',
          attrs: { rel: 'modulepreload', crossorigin: true, href: `/ui/${fileName}` },
          injectTo: 'head',
        }));
    },
  },
};

/** Writes a compressed copy of each script and style sheet. */
function compress(folder) {
  for (const name of readdirSync(folder))
    if (/\.(?:js|css)$/.test(name))
      writeFileSync(join(folder, `${name}.gz`), gzipSync(readFileSync(join(folder, name)), { level: 9 }));
}

const started = performance.now();
for (const [name, base] of APPLICATIONS) {
  await build({
    configFile: false,
    logLevel: 'warn',
    root: join(root, 'src/web', name),
    base,
    plugins: [react(), namesAtOnce],
    build: {
      outDir: join(root, 'dist/web', name),
      emptyOutDir: true,
      target: 'es2022',
      // Themes are `light-dark()`, which is not rewritten for older browsers.
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      rolldownOptions: { output: { codeSplitting: { groups: FILES } } },
      // One small style sheet, in import order, however the scripts are split.
      cssCodeSplit: false,
      // Inlined assets would require `data:` in the content security policy.
      assetsInlineLimit: 0,
      // Vite's preload helper is a module without inline code; the polyfill is for unsupported browsers.
      modulePreload: { polyfill: false },
    },
  });
  compress(join(root, 'dist/web', name, 'assets'));
}
process.stderr.write(`ok  web pages  (${((performance.now() - started) / 1000).toFixed(1)} s)\n`);
