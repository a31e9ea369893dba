// `npm run docs`: builds the documentation as a site in dist/site. VitePress has packages of its own in docs/site, so that
// nobody else installs them.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { Metrics } from '../src/server/observe/metrics/metrics.ts';
import { manualPage, manualPageToMarkdown } from './manual-pages.mjs';
import { root } from './run.mjs';

const site = join(root, 'docs/site');
const pages = join(site, 'pages');

/** Runs a program in docs/site; ends this one if it fails. */
function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: site, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** Pages outside of docs/, and where they are on the site. */
const OUTSIDE = {
  'README.md': 'index.md',
  'ARCHITECTURE.md': 'architecture.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'reporting.md',
  'CODE_OF_CONDUCT.md': 'conduct.md',
};

/** Sections of manual pages. */
const MANUAL = /\.[157]$/;

/** The place of a file of the repository on the site: pages of docs/ at its root, other files as text. */
function placeOf(file) {
  if (OUTSIDE[file] !== undefined) return OUTSIDE[file];
  if (file.startsWith('man/') && MANUAL.test(file)) return `reference/${manualPage(file)}.md`;
  if (file.startsWith('docs/')) return file.slice('docs/'.length).replace(/README\.md$/, 'index.md');
  return `files/${/\.(?:yaml|json|txt|svg|png)$/.test(file) ? file : `${file}.txt`}`;
}

/** Copies a page with its links changed to places on the site. Returns files that it links to. */
function copyPage(file) {
  const linked = [];
  const place = placeOf(file);
  const text = readFileSync(join(root, file), 'utf8').replace(
    /(\]\()([^)\s#]+)(#[^)\s]*)?(?=\))/g,
    (whole, before, href, anchor = '') => {
      if (/^\w+:/.test(href)) return whole;
      const target = posix.join(posix.dirname(file), href);
      if (!existsSync(join(root, target))) return whole;
      const isManual = target.startsWith('man/') && MANUAL.test(target);
      if (!target.endsWith('.md') && !isManual) linked.push(target);
      // A folder has no page: its name remains.
      const to = placeOf(target.replace(/\/$/, ''));
      if (!/\.\w+$/.test(target)) return `${before}/${anchor}`;
      const isPage = isManual || target.endsWith('.md') || /\.(?:png|svg)$/.test(target);
      return isPage ? `${before}${relativeTo(place, to)}${anchor}` : `${before}pathname:///${to}${anchor}`;
    },
  );
  write(join(pages, place), text.replaceAll('pathname:///', '/'));
  return linked;
}

function relativeTo(from, to) {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** All metrics, with the prefix that they have by default. */
function metricsPage() {
  const rows = new Metrics([], 'gw_').describe().map(({ name, type, help, labels }) => {
    const shown = type === 'counter' ? `${name}_total` : name;
    return `| \`${shown}\` | ${type} | ${help.replaceAll('|', '\\|')} | ${labels.map((label) => `\`${label}\``).join(', ')} |`;
  });
  return ['# Metrics', '', '| Metric | Type | | Labels |', '|---|---|---|---|', ...rows, ''].join('\n');
}

rmSync(pages, { recursive: true, force: true });
const sources = [
  ...Object.keys(OUTSIDE),
  ...globSync('docs/**/*.md', { cwd: root, exclude: ['docs/site/**'] }),
];
const linked = new Set(sources.flatMap(copyPage));
for (const file of globSync('man/*.[157]', { cwd: root }))
  write(join(pages, placeOf(file)), manualPageToMarkdown(readFileSync(join(root, file), 'utf8')));
for (const file of linked) {
  const isPicture = /\.(?:png|svg)$/.test(file);
  if (!existsSync(join(root, file)) || !/\.\w+$/.test(file)) continue;
  const target = join(pages, isPicture ? '' : 'public', placeOf(file));
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(root, file), target);
}
write(join(pages, 'reference/metrics.md'), metricsPage());
// Not `npm ci`: the lockfile lacks binaries of rollup for platforms that the registry in use does not offer.
if (!existsSync(join(site, 'node_modules/vitepress')))
  run('npm', ['install', '--no-save', '--ignore-scripts']);
run(process.execPath, ['node_modules/vitepress/bin/vitepress.js', 'build', '.']);
