// A Keycloak of its own for a test run: found in the local Maven repository, or fetched by Maven.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const VERSION = '26.4.0';
const startMs = 300_000;

const succeeds = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** What is missing to run it, in words; undefined when nothing is. */
export function missing() {
  if (!succeeds('java', ['-version'])) return 'there is no java (17 or newer)';
  if (!succeeds('jar', ['--version'])) return 'there is no jar, which a JDK has';
  if (!existsSync(archive()) && !succeeds('mvn', ['-v'])) return 'there is no mvn to fetch Keycloak with';
  return undefined;
}

function archive() {
  const name = 'keycloak-quarkus-dist';
  return join(homedir(), '.m2/repository/org/keycloak', name, VERSION, `${name}-${VERSION}.zip`);
}

function fetchArchive() {
  if (existsSync(archive())) return;
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`;
  if (!succeeds('mvn', ['-q', 'dependency:get', artifact, '-Dtransitive=false']) || !existsSync(archive()))
    throw new Error(`mvn could not fetch Keycloak ${VERSION}`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts it; resolves when it answers, which takes about a minute. */
export async function start() {
  fetchArchive();
  const folder = mkdtempSync(join(tmpdir(), 'agctl-keycloak-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const unpacked = spawnSync('jar', ['xf', archive()], { cwd: folder });
  if (unpacked.status !== 0) {
    remove();
    throw new Error(`Keycloak could not be unpacked: ${unpacked.stderr}`);
  }
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  const logFile = join(folder, 'log');
  // Through a shell: unpacked by jar, the script is not executable. A group of its own: the script starts java.
  const child = spawn('bash', ['bin/kc.sh', 'start-dev', '--http-host=127.0.0.1', `--http-port=${port}`], {
    cwd: join(folder, `keycloak-${VERSION}`),
    env: { ...process.env, KC_BOOTSTRAP_ADMIN_USERNAME: 'admin', KC_BOOTSTRAP_ADMIN_PASSWORD: password },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const log = createWriteStream(logFile);
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, 'SIGKILL');
      await once(child, 'exit');
    }
    remove();
  };
  const url = `http://127.0.0.1:${port}`;
  const deadline = performance.now() + startMs;
  while (!(await answers(`${url}/realms/master`))) {
    if (child.exitCode === null && performance.now() < deadline) await delay(250);
    else {
      const printed = readFileSync(logFile, 'utf8').slice(-3_000);
      await stop();
      throw new Error(`Keycloak did not start:\n${printed}`);
    }
  }
  return { env: { KEYCLOAK_URL: url, KEYCLOAK_ADMIN_PASSWORD: password }, stop };
}

async function answers(url) {
  const response = await fetch(url).catch(() => undefined);
  await response?.body?.cancel();
  return response?.ok === true;
}
