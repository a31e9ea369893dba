import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Block, blocksIn } from '../kit/documentation.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { AGCTL } from '../kit/process.ts';
import { until } from '../kit/until.ts';

/** The path of an MCP server from node_modules. */
export const server = (name: string): string =>
  join(import.meta.dirname, `../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);

/** An MCP server of guides in YAML, from node_modules instead of the registry. */
export const FILES = {
  'cmd: npx, args: ["-y", "@modelcontextprotocol/server-filesystem", "./files"]': `cmd: node, args: ["${server('filesystem')}", "./files"]`,
};

interface Followed extends AsyncDisposable {
  readonly folder: string;
  /** What each command block has printed, in order. */
  readonly printed: readonly string[];
  /** Files that the guide lets the reader write. */
  readonly files: ReadonlyMap<string, string>;
  /** Access log of the gateway. */
  readonly log: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Servers that a guide lets the reader start, which run while later blocks are followed. */
const SERVICE = /^(?:[A-Z_]+=\S+ )*agctl (?:(?:memory )?serve|record|replay)\b/;
/** Servers that the reader stops before another one. */
const UNTIL_NEXT = /\bagctl (?:record|replay)\b/;
/** Commands that need a daemon, a cluster, a terminal or root: test/docs-code.test.ts checks what can be checked without. */
const ELSEWHERE = /^(?:docker|helm|kubectl|mvn|npm|sudo|agctl top\b)/;

/**
 * Follows a page of docs/guides, or the blocks of another page, as a reader does, in an empty folder: writes each block that begins with `# file: NAME`, and JSON as
 * servers.json, or server.json in the format of a registry; runs each `sh` block, starts servers in the background. Variables stay for later blocks. `replace`: texts
 * that differ in tests, such as ports. `addresses`: variables with the gateway's other addresses; commands reach ADMIN_ADDR.
 */
export async function followGuide(
  page: string | { readonly name: string; readonly blocks: readonly Block[] },
  replace: Readonly<Record<string, string>> = {},
  addresses: { readonly ADMIN_ADDR?: string; readonly STATS_ADDR?: string } = {},
): Promise<Followed> {
  const { name, blocks } =
    typeof page === 'string' ? { name: page, blocks: blocksIn(`docs/guides/${page}`) } : page;
  const folder = await temporaryFolder();
  const bin = join(folder.path, '.bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'agctl'), `#!/bin/sh\nexec "${process.execPath}" "${AGCTL}" "$@"\n`, {
    mode: 0o755,
  });
  // The gateway hands on variables that it knows, and no others: servers of npm start in two thirds of the time with compiled code.
  const compiled = process.env['NODE_COMPILE_CACHE'] ?? join(folder.path, '.cache');
  writeFileSync(
    join(bin, 'node'),
    `#!/bin/sh\nNODE_COMPILE_CACHE="${compiled}" exec "${process.execPath}" "$@"\n`,
    { mode: 0o755 },
  );
  const env = {
    PATH: [bin, dirname(process.execPath), '/usr/bin:/bin'].join(':'),
    HOME: folder.path,
    // Otherwise each guide compiles agctl for its own HOME.
    NODE_COMPILE_CACHE: compiled,
    ...(addresses.ADMIN_ADDR === undefined ? {} : { AGCTL_ADMIN: addresses.ADMIN_ADDR }),
    ...{ ADMIN_ADDR: 'off', STATS_ADDR: 'off', READINESS_ADDR: 'off', ...addresses },
  };
  const printed: string[] = [];
  const files = new Map<string, string>();
  const output = { stdout: '', stderr: '' };
  const services: ChildProcess[] = [];
  let stopped: ChildProcess | undefined;
  const saved = join(folder.path, '.environment');
  writeFileSync(saved, '');
  const close = async (): Promise<void> => {
    await Promise.all(
      services.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null).map(stop),
    );
    await folder.remove();
  };
  try {
    for (const { language, text: written } of blocks) {
      const text = Object.entries(replace).reduce((all, [from, to]) => all.replaceAll(from, to), written);
      const file = /^# file: (\S+)\n/.exec(text)?.[1];
      if (file !== undefined) {
        files.set(file, text);
        mkdirSync(dirname(join(folder.path, file)), { recursive: true });
        writeFileSync(join(folder.path, file), text);
      } else if (language === 'json') {
        const isOfRegistry = /"(?:packages|remotes)":/.test(text);
        writeFileSync(join(folder.path, isOfRegistry ? 'server.json' : 'servers.json'), text);
      } else if (SERVICE.test(text)) {
        if (stopped !== undefined) await stop(stopped);
        const service = spawn('bash', ['-c', `. ${saved}; ${text.replace(/(?=agctl )/, 'exec ')}`], {
          cwd: folder.path,
          env,
        });
        services.push(service);
        stopped = UNTIL_NEXT.test(text) ? service : undefined;
        let printedNow = '';
        service.stdout?.on('data', (chunk) => {
          output.stdout += chunk;
          printedNow += chunk;
        });
        service.stderr?.on('data', (chunk) => {
          output.stderr += chunk;
          printedNow += chunk;
        });
        const isReady = (): boolean =>
          /ready in/.test(printedNow) &&
          (!text.includes('--docs') || /documents are up to date/.test(printedNow));
        await until(isReady, 30_000).catch(() => {
          throw new Error(`${name}: ${output.stderr}`);
        });
      } else if (language === 'sh' && !ELSEWHERE.test(text))
        printed.push(await run(`. ${saved}\n${text}\nexport -p >${saved}`, folder.path, env));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    folder: folder.path,
    printed,
    files,
    get log() {
      return output.stdout;
    },
    environment: Object.fromEntries(
      [...readFileSync(saved, 'utf8').matchAll(/^declare -x (\w+)="(.*)"$/gm)].map(([, key, value]) => [
        key,
        value,
      ]),
    ) as Record<string, string>,
    [Symbol.asyncDispose]: close,
  };
}

async function stop(service: ChildProcess): Promise<void> {
  const ended = once(service, 'exit');
  service.kill('SIGTERM');
  await ended;
}

function run(script: string, cwd: string, env: Readonly<Record<string, string>>): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('bash', ['-eo', 'pipefail', '-c', script], { cwd, env }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${script}: ${stderr || error.message}`));
    });
  });
}
