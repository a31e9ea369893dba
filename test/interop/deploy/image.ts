import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join, posix } from 'node:path';
import { env } from 'node:process';
import { promisify } from 'node:util';
import { ROOT } from './tools.ts';

// Builds a Dockerfile without a container daemon: each stage is a folder, in which RUN is executed and COPY copies what
// .dockerignore lets into the build. The base images are left out; the Node.js of the tests stands in for theirs.

/** The last stage. */
export interface Image {
  /** Folder that stands for `/`. */
  readonly root: string;
  readonly workdir: string;
  readonly user: string;
  readonly stopSignal: NodeJS.Signals;
  readonly entrypoint: readonly [string, ...string[]];
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders of all stages by name. */
  readonly stages: ReadonlyMap<string, string>;
}

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** The instructions, continued lines joined, without comments. */
function parse(file: string): Instruction[] {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replace(/\\\n/g, ' ');
  return lines.split('\n').flatMap((line) => {
    const [, name, text] = /^([A-Z]+)\s+(.+)$/.exec(line.trim()) ?? [];
    return name === undefined || text === undefined ? [] : [{ name, text: text.trim() }];
  });
}

/** Paths that .dockerignore lets into the build. Everything else is excluded by its first line. */
const allowed = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));

/**
 * Runs the Dockerfile below `folder`. `onlyStage`: builds that stage again and the last one, with the other stages of
 * `from`.
 */
export async function buildImage(
  file: string,
  folder: string,
  { onlyStage, from }: { onlyStage?: string; from?: Image } = {},
): Promise<Image> {
  const stages = new Map(from?.stages);
  let stage = { name: '', root: '', workdir: '/' };
  let isBuilt = true;
  const settings = {
    user: 'root',
    stopSignal: 'SIGTERM',
    entrypoint: [''],
    command: [''],
    env: {} as Record<string, string>,
  };
  for (const { name, text } of parse(file)) {
    if (name === 'FROM') {
      const [, as = 'last'] = / AS (\w+)$/.exec(text) ?? [];
      isBuilt = onlyStage === undefined || as === onlyStage || as === 'last';
      stage = { name: as, root: join(folder, as), workdir: '/' };
      if (isBuilt) {
        mkdirSync(stage.root, { recursive: true, mode: 0o755 });
        stages.set(as, stage.root);
      }
    } else if (name === 'WORKDIR') {
      stage.workdir = text;
      if (isBuilt) mkdirSync(join(stage.root, text), { recursive: true });
    } else if (name === 'RUN' && isBuilt) await runIn(join(stage.root, stage.workdir), text);
    else if (name === 'COPY' && isBuilt) copy(text, stage, stages);
    else if (name === 'USER') settings.user = text;
    else if (name === 'STOPSIGNAL') settings.stopSignal = text;
    else if (name === 'ENTRYPOINT') settings.entrypoint = JSON.parse(text);
    else if (name === 'CMD') settings.command = JSON.parse(text);
    else if (name === 'ENV')
      for (const [, key, value] of text.matchAll(/(\w+)=(\S+)/g))
        settings.env[key as string] = value as string;
  }
  const { root, workdir } = stage;
  // The file system of a container belongs to root; folders of tests are private.
  chmodSync(folder, 0o755);
  const [program, ...args] = settings.entrypoint as [string, ...string[]];
  return {
    ...settings,
    root,
    workdir,
    stopSignal: settings.stopSignal as NodeJS.Signals,
    entrypoint: [
      join('usr/local/bin', program),
      ...args.map((arg) => (arg.startsWith('/') ? root + arg : arg)),
    ],
    stages,
  };
}

/** Installs what is needed for a build, which the project has installed from the same lockfile. */
const FOR_BUILD = 'npm ci --ignore-scripts --no-audit';

async function runIn(cwd: string, instruction: string): Promise<void> {
  const command = instruction === FOR_BUILD ? `cp -al '${join(ROOT, 'node_modules')}' .` : instruction;
  const path = [dirname(process.execPath), env['PATH'] ?? ''].join(delimiter);
  await promisify(execFile)('sh', ['-euc', command], {
    cwd,
    env: { PATH: path, HOME: env['HOME'] ?? '/root' },
    timeout: 600_000,
    maxBuffer: 64 * 2 ** 20,
  });
}

function copy(
  text: string,
  stage: { readonly root: string; readonly workdir: string },
  stages: ReadonlyMap<string, string>,
): void {
  const parts = text.split(/\s+/);
  const source = /^--from=(\w+)$/.exec(parts[0] ?? '')?.[1];
  const paths = source === undefined ? parts : parts.slice(1);
  const target = paths.at(-1) as string;
  for (const path of paths.slice(0, -1)) {
    const to = posix.resolve(
      stage.workdir,
      target.endsWith('/') ? posix.join(target, posix.basename(path)) : target,
    );
    const from = source === undefined ? contextPath(path) : imagePath(path, stages.get(source));
    // Libraries of the base image.
    if (from === undefined) continue;
    mkdirSync(dirname(join(stage.root, to)), { recursive: true });
    cpSync(from, join(stage.root, to), { recursive: true, dereference: true });
  }
}

function contextPath(path: string): string {
  if (!allowed.some((entry) => path === entry || path.startsWith(`${entry}/`)))
    throw new Error(`.dockerignore keeps ${path} out of the build`);
  return join(ROOT, path);
}

function imagePath(path: string, root: string | undefined): string | undefined {
  if (root === undefined) throw new Error(`there is no such stage for ${path}`);
  if (path === '/usr/local/bin/node') return process.execPath;
  return path.startsWith('/usr/lib/') ? undefined : join(root, path);
}
