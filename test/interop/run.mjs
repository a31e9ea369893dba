// npm run test:interop
// Tests against other people's software that is too big for `npm test`. Exits 70 when something could not be run at
// all, and says what and why.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { missing, startKeycloak } from './keycloak/start.mjs';

/** Runs the test files of one folder; resolves to the exit code. */
async function runTests(folder, env) {
  const child = spawn('vitest', ['run', folder], { stdio: 'inherit', env: { ...process.env, ...env } });
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

async function keycloak() {
  const reason = missing();
  if (reason !== undefined) {
    console.error(`SKIPPED: keycloak: ${reason}. NOTHING was tested against it.`);
    return 70;
  }
  const started = performance.now();
  const server = await startKeycloak();
  console.error(`keycloak answers at ${server.url} (${((performance.now() - started) / 1000).toFixed(0)} s)`);
  // It runs in a group of its own, which Ctrl-C does not reach.
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => server.stop().finally(() => process.exit(130)));
  try {
    return await runTests('test/interop/keycloak', {
      KEYCLOAK_URL: server.url,
      KEYCLOAK_ADMIN_PASSWORD: server.password,
    });
  } finally {
    await server.stop();
  }
}

process.exitCode = await keycloak().catch((error) => {
  console.error(error.message);
  return 70;
});
