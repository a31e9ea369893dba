import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { documentText, type Found, type Line } from './kill-lines.ts';

/** One process owns so many stores: its death is a crash of each. Starting a process is most of what a crash costs. */
const STORES = 8;
/** Crashes of one set of files before it is checked page by page and a new one begins. */
const GENERATION = 12;

export interface KillReport {
  /** Stores that were open or being opened when they died. */
  readonly crashes: number;
  readonly kills: number;
  readonly acknowledged: number;
  /** Acknowledged last by a process, but found only because the store keeps more than it must; shows that kills hit writes. */
  readonly unacknowledged: number;
  readonly problems: readonly string[];
}

interface Expected {
  readonly turns: Set<string>;
  version: number;
}

/**
 * Kills a process that writes to stores, again and again, at random times, and compares what it acknowledged with what
 * its successor finds. Runs until there were `crashes` of them; `onProgress` hears after each generation.
 */
export async function killLoop(
  folder: string,
  crashes: number,
  onProgress: (report: KillReport) => void = () => undefined,
): Promise<KillReport> {
  const report = { crashes: 0, kills: 0, acknowledged: 0, unacknowledged: 0, problems: [] as string[] };
  for (let generation = 0; report.crashes < crashes && report.problems.length === 0; generation++) {
    const here = join(folder, `${generation}`);
    mkdirSync(here);
    const paths = Array.from({ length: STORES }, (_, index) => join(here, `${index}.db`));
    const expected = paths.map((): Expected => ({ turns: new Set(), version: -1 }));
    for (let round = 0; round < GENERATION && report.crashes < crashes; round++) {
      await killOnce(paths, expected, round, report, join(folder, 'cache'));
      report.kills++;
      report.crashes += STORES;
    }
    for (const path of paths) checkPages(path, report.problems);
    rmSync(here, { recursive: true, force: true });
    onProgress(report);
  }
  return report;
}

async function killOnce(
  paths: readonly string[],
  expected: readonly Expected[],
  round: number,
  report: { acknowledged: number; unacknowledged: number; problems: string[] },
  cache: string,
): Promise<void> {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, 'kill-child.ts'),
      `${round * 1_000_000}`,
      ...paths,
    ],
    // Compiled once: what a start costs is halved by that, and the first child writes it down before it is killed.
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env, NODE_COMPILE_CACHE: cache } },
  );
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  // Some die while they open, most while they write.
  let fuse: NodeJS.Timeout | undefined;
  const kill = (): void => void child.kill('SIGKILL');
  let open = 0;
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as Line;
    const known = expected[line.store] as Expected;
    if (line.kind === 'found') {
      compare(paths[line.store] as string, known, line.found, report);
      open++;
      if (open === 1 && Math.random() < 0.1) kill();
      if (open === paths.length) fuse = setTimeout(kill, Math.random() * 60);
    } else {
      report.acknowledged++;
      if (line.kind === 'turn') known.turns.add(line.content);
      else known.version = line.version;
    }
  }
  clearTimeout(fuse);
  if (child.exitCode === null && child.signalCode === null)
    await new Promise((resolve) => child.once('exit', resolve));
  if (child.signalCode !== 'SIGKILL')
    report.problems.push(`the child ended by itself: ${errors.slice(0, 2000)}`);
}

function compare(
  path: string,
  known: Expected,
  found: Found,
  report: { unacknowledged: number; problems: string[] },
): void {
  const problem = (text: string): void => void report.problems.push(`${path}: ${text}`);
  const turns = new Set(found.turns);
  if (turns.size !== found.turns.length) problem('a turn is there twice');
  for (const content of known.turns)
    if (!turns.has(content)) problem(`turn ${content} was acknowledged and is lost`);
  for (const content of turns) {
    if (known.turns.has(content)) continue;
    report.unacknowledged++;
    known.turns.add(content);
  }
  if (found.hash === undefined) {
    if (known.version >= 0) problem(`document version ${known.version} was acknowledged and is lost`);
    return;
  }
  const version = Number(found.hash);
  if (version < known.version) problem(`document version ${known.version} is lost, ${version} is there`);
  known.version = version;
  const whole = Array.from({ length: found.promised }, (_, part) => documentText(version, part)).sort();
  if (JSON.stringify(whole) !== JSON.stringify(found.chunks))
    problem(`version ${version} of the document has parts ${found.chunks.join(' | ')}`);
  if (found.vectors !== found.promised || found.edges !== found.promised)
    problem(`${found.promised} chunks have ${found.vectors} vectors and ${found.edges} edges`);
}

/** Every page, every index, and the full-text index against its content. */
function checkPages(path: string, problems: string[]): void {
  const database = new DatabaseSync(path);
  const [row] = database.prepare('PRAGMA integrity_check').all();
  const finding = Object.values(row ?? {})[0];
  if (finding !== 'ok') problems.push(`${path}: ${finding}`);
  try {
    database.exec(`INSERT INTO memory_words (memory_words, rank) VALUES ('integrity-check', 1)`);
  } catch (error) {
    problems.push(`${path}: the index of words: ${error}`);
  }
  database.close();
}
