import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import { ExpectedBatches } from './kill-batches.ts';
import { brief, documentText, type Found, type Line } from './kill-lines.ts';
import { ExpectedTexts } from './kill-texts.ts';
import { buildVictim } from './kill-victim.ts';

/** Processes at once: one starts while the other waits for the disk. */
const LANES = 2;
/**
 * Kills of the owners of one file before it is checked page by page and a new one begins: enough that the log of writes
 * is written back between them, also where the machine is busy and each owner writes little.
 */
const GENERATION = 60;
/** A process dies so long after it has opened its store, in ms, at most. */
const FUSE = 60;
/** Share of the processes that die while they open it. */
const DIE_OPENING = 0.1;

export interface KillReport {
  /** Processes that were killed while they opened a store or wrote to it. */
  readonly kills: number;
  readonly acknowledged: number;
  /** Found though no acknowledgement was heard; shows that kills hit writes. */
  readonly unacknowledged: number;
  readonly problems: readonly string[];
}

type Report = { -readonly [Field in keyof KillReport]: KillReport[Field] } & { readonly problems: string[] };

interface Expected {
  readonly turns: Set<string>;
  version: number;
  readonly batches: ExpectedBatches;
  readonly texts: ExpectedTexts;
}

/**
 * Kills processes that write to a store, again and again, at random times, and compares what each acknowledged with
 * what its successor finds. Runs until there were `kills` of them; `onProgress` hears after each generation.
 */
export async function killLoop(
  folder: string,
  kills: number,
  onProgress: (report: KillReport) => void = () => undefined,
): Promise<KillReport> {
  const program = await buildVictim(join(folder, 'victim'));
  const report: Report = { kills: 0, acknowledged: 0, unacknowledged: 0, problems: [] };
  let generations = 0;
  const generation = async (): Promise<void> => {
    // Every second one is about queued texts and their vectors, the others about turns, documents, imports and deletions.
    const embeds = generations % 2 === 1;
    const here = join(folder, `${generations++}`);
    mkdirSync(here);
    const path = join(here, 'memory.db');
    const expected: Expected = {
      turns: new Set(),
      version: -1,
      batches: new ExpectedBatches(),
      texts: new ExpectedTexts(),
    };
    for (let round = 0; round < GENERATION && report.kills < kills; round++) {
      report.kills++;
      // Another model each second time, which embeds everything again.
      const model = embeds ? `model ${round >> 1}/128` : '';
      await killOnce([program, path, model, `${round * 1_000_000}`], expected, report);
    }
    await look([program, path, embeds ? 'last model/128' : ''], expected, report);
    checkPages(path, report.problems);
    report.problems.push(...expected.batches.bytesProblems(here));
    rmSync(here, { recursive: true, force: true });
    onProgress(report);
  };
  const lane = async (): Promise<void> => {
    while (report.kills < kills && report.problems.length === 0) await generation();
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return report;
}

async function killOnce(args: readonly string[], expected: Expected, report: Report): Promise<void> {
  const started = performance.now();
  const child = new Victim(args);
  const kill = (): void => void child.process.kill('SIGKILL');
  // A start takes about twice the fuse.
  let fuse = Math.random() < DIE_OPENING ? setTimeout(kill, FUSE + Math.random() * FUSE * 2) : undefined;
  await child.read((line) => {
    if (line.kind === 'found' || line.kind === 'texts') {
      check(expected, line, report, false);
      // On a busy machine, everything takes longer.
      fuse ??= setTimeout(kill, Math.random() * Math.max(FUSE, (performance.now() - started) / 2));
    } else {
      report.acknowledged++;
      if (line.kind === 'turn') expected.turns.add(line.content);
      else if (line.kind === 'document') expected.version = line.version;
      else if (line.kind === 'page') expected.texts.take(line);
      else expected.batches.take(line);
    }
  });
  clearTimeout(fuse);
  if ((await child.ended) !== 'SIGKILL') report.problems.push(`the child ended by itself: ${child.errors}`);
}

/** What the last one that was killed had acknowledged. */
async function look(args: readonly string[], expected: Expected, report: Report): Promise<void> {
  const child = new Victim(args);
  await child.read((line) => {
    if (line.kind === 'found' || line.kind === 'texts') check(expected, line, report, true);
  });
  if ((await child.ended) !== 0) report.problems.push(`the store cannot be opened again: ${child.errors}`);
}

class Victim {
  readonly process: ChildProcess;
  /** The signal, or the exit code. */
  readonly ended: Promise<unknown>;
  errors = '';

  constructor(args: readonly string[]) {
    this.process = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process.stderr?.on('data', (chunk) => {
      this.errors = `${this.errors}${chunk}`.slice(0, 2000);
    });
    this.ended = once(this.process, 'exit').then(([code, signal]) => signal ?? code);
  }

  /** Until it has closed its output. A line without its end was cut by the kill. */
  async read(take: (line: Line) => void): Promise<void> {
    let rest = '';
    for await (const chunk of (this.process.stdout as Readable).setEncoding('utf8')) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) take(JSON.parse(line) as Line);
    }
  }
}

type FoundLine = Extract<Line, { kind: 'found' | 'texts' }>;

/** @param isSettled the process embedded what was left */
function check(expected: Expected, line: FoundLine, report: Report, isSettled: boolean): void {
  if (line.kind === 'texts') report.problems.push(...expected.texts.problems(line.found, isSettled));
  else {
    compare(expected, line.found, report);
    report.problems.push(...expected.batches.problems(line.found.batches));
  }
}

function compare(known: Expected, found: Found, report: Report): void {
  const problem = (text: string): void => void report.problems.push(text);
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
  const whole = Array.from({ length: found.promised }, (_, part) =>
    brief(documentText(version, part)),
  ).sort();
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
