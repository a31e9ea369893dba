// The generator of MCP calls in `bench scale`: one session per connection, which stay open between the runs.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('session-load.mjs', import.meta.url));

/** Opens the sessions. Resolves to `{ run, pid, workers, stop }`; `workers` counts the sessions of each worker. */
export async function startSessions(url, count) {
  const child = fork(script, [url, String(count)]);
  const gone = once(child, 'exit').then(([code]) => {
    throw new Error(`the generator ended with code ${code}`);
  });
  gone.catch(() => undefined);
  const answer = async () => (await Promise.race([once(child, 'message'), gone]))[0];
  const { workers } = await answer();
  return {
    pid: child.pid,
    workers,
    async run(seconds) {
      child.send({ seconds });
      return answer();
    },
    stop: () => child.kill(),
  };
}
