// `npm run release -- VERSION [--dry-run]`: checks, builds, commits and tags a release. Pushing the tag publishes it
// (.github/workflows/release.yml). With --dry-run, dist/ is built, and nothing else is written.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, matchesGlob } from 'node:path';
import { root, run } from './run.mjs';

/** A package is 3.1 MiB today; one that is larger than this contains what it should not. In bytes. */
const MAX_PACKED = 4 * 2 ** 20;

/** Files with the version in them, beside package.json and package-lock.json. */
const NAMING_VERSION = [
  'deploy/helm/agctl/Chart.yaml',
  'docs/guides/github-actions.md',
  'docs/guides/kubernetes.md',
];

/** Names of files that hold keys, passwords or data. */
const SECRET =
  /(?:^|\/)(?:\.env|[^/]*\.env|\.npmrc|\.netrc|id_\w+|[^/]*\.(?:pem|key|p12|pfx|jks|db|sqlite))$/;

/** Files of sources and tests, which `files` of package.json must not name. The example of an agent is one of sources. */
const SOURCE =
  /^(?:src|test|scripts|bench|node_modules)\/|^(?!examples\/agent\/).*(?<!\.d)\.[cm]?tsx?$|\.map$/;

const SBOM = join(root, 'results/sbom.cdx.json');

const read = (file) => readFileSync(join(root, file), 'utf8');
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const npm = (...args) => execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });

class ReleaseError extends Error {}

function release(version, isDryRun) {
  const { version: current } = JSON.parse(read('package.json'));
  checkVersion(version, current);
  checkRepository(version);
  checkChangelog(version);
  const changed = ['package.json', 'package-lock.json', ...NAMING_VERSION];
  try {
    if (!isDryRun) setVersion(version, current);
    run(process.execPath, ['scripts/build.mjs']);
    checkPackage();
    const sbom = npm('run', '--silent', 'sbom');
    if (isDryRun) return `${version} can be released`;
    mkdirSync(dirname(SBOM), { recursive: true });
    writeFileSync(SBOM, sbom);
    git('commit', '--quiet', '--message', `release: ${version}`, '--', ...changed);
  } catch (error) {
    if (!isDryRun) git('checkout', '--quiet', 'HEAD', '--', ...changed);
    throw error;
  }
  git('tag', '--annotate', '--message', `agctl ${version}`, `v${version}`);
  return `tagged v${version}; publish it: git push origin main v${version}`;
}

function checkVersion(version, current) {
  if (!/^\d+\.\d+\.\d+$/.test(version ?? ''))
    throw new ReleaseError('expected a version, such as: npm run release -- 1.2.3 [--dry-run]');
  const order = version.localeCompare(current, 'en', { numeric: true });
  if (order <= 0) throw new ReleaseError(`${version} is not newer than ${current} in package.json`);
}

function checkRepository(version) {
  const branch = git('branch', '--show-current');
  if (branch !== 'main') throw new ReleaseError(`releases are made on main, not on ${branch || 'no branch'}`);
  const changes = git('status', '--porcelain');
  if (changes !== '') throw new ReleaseError(`there are uncommitted changes:\n${changes}`);
  if (git('tag', '--list', `v${version}`) !== '') throw new ReleaseError(`the tag v${version} exists`);
}

function checkChangelog(version) {
  const [latest = ''] = /^## .*$/m.exec(read('CHANGELOG.md')) ?? [];
  const [, named, date = ''] = /^## (\S+) – (\d{4}-\d\d-\d\d)$/.exec(latest) ?? [];
  if (named !== version || Number.isNaN(Date.parse(date)))
    throw new ReleaseError(
      `CHANGELOG.md must begin with the section "## ${version} – YYYY-MM-DD"; it begins with "${latest}"`,
    );
}

function setVersion(version, current) {
  npm('version', '--no-git-tag-version', '--ignore-scripts', version);
  for (const file of NAMING_VERSION) writeFileSync(join(root, file), read(file).replaceAll(current, version));
}

/** Publishes without sending anything, and compares what npm packs for that with what package.json promises. */
function checkPackage() {
  const [packed] = Object.values(JSON.parse(npm('publish', '--json', '--dry-run', '--ignore-scripts')));
  const paths = packed.files.map(({ path }) => path);
  const promised = JSON.parse(read('package.json')).files;
  const isIn = (path, entry) => path.startsWith(`${entry}/`) || matchesGlob(path, entry);
  const problems = [
    ...paths.filter((path) => SOURCE.test(path)).map((path) => `${path} is a source`),
    ...paths.filter((path) => SECRET.test(path)).map((path) => `${path} may hold a secret`),
    ...paths
      .filter((path) => path !== 'package.json' && !promised.some((entry) => isIn(path, entry)))
      .map((path) => `${path} is in no entry of files`),
    ...promised
      .filter((entry) => !paths.some((path) => isIn(path, entry)))
      .map((entry) => `${entry} of files is missing`),
    ...(packed.size > MAX_PACKED ? [`it has ${packed.size} bytes; at most ${MAX_PACKED} are expected`] : []),
  ];
  if (problems.length > 0) throw new ReleaseError(`the package is not right:\n${problems.join('\n')}`);
}

const [version, option] = process.argv.slice(2);
try {
  if (option !== undefined && option !== '--dry-run') throw new ReleaseError(`unknown option: ${option}`);
  process.stdout.write(`${release(version, option === '--dry-run')}\n`);
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
