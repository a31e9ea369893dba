import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { RequestObserver } from '../kernel/observer.ts';
import type { Connection } from './connection.ts';
import type { Session } from './session.ts';
import { detailOf, publicProblem, TargetFailure } from './target-failure.ts';
import { timeoutMessage } from './timeouts.ts';
import { traced } from './traced.ts';

/**
 * Opens all connections of a new session in parallel. A target that fails, or has not answered within `LIMITS.slowBegin`,
 * joins the session later (`failOpen`). If all targets fail, `mcp_session_failed` is thrown with every reason. A session with
 * a single target or a `failClosed` backend needs all targets and waits up to `LIMITS.sessionBegin`.
 */
export async function connectAll(
  session: Session,
  headers: readonly string[],
  observer?: RequestObserver,
): Promise<void> {
  const { connections } = session;
  const needsAll = session.options.failClosed || connections.length === 1;
  const attempts = connections.map((connection) => new Attempt(connection));
  const all = Promise.all(attempts.map((attempt) => attempt.run(headers, observer)));
  await within(needsAll ? LIMITS.sessionBegin : LIMITS.slowBegin, all);
  const missing = attempts.filter(({ isConnected }) => !isConnected);
  if (missing.length === 0) return;
  if (!needsAll && attempts.some(({ isConnected, isPending }) => isConnected || isPending)) {
    for (const { connection, isPending } of missing) if (isPending) connection.markLate();
    return;
  }
  const problems = missing.map(({ connection, isPending, problem }) => ({
    target: connection.target.name,
    problem: isPending ? connection.timeoutFailure(timeoutMessage(LIMITS.sessionBegin)) : problem,
  }));
  const known = problems.find(({ problem }) => problem instanceof AppError);
  if (known !== undefined) throw known.problem;
  const [first] = problems;
  if (attempts.length === 1 && isConnectedstreamStatus(first?.problem)) throw first.problem;
  const reasons = problems.map(({ target, problem }) => publicProblem(target, problem)).join('; ');
  const details = problems
    .filter(({ problem }) => problem instanceof TargetFailure)
    .map(({ target, problem }) => `target "${target}": ${detailOf(problem)}`);
  throw new AppError('mcp_session_failed', {
    message: `mcp: failed to create session: ${reasons}`,
    ...(details.length > 0 && { detail: details.join('; ') }),
  });
}

/**
 * For list requests of a session that started without any target: waits for the first target, and then up to
 * `LIMITS.slowTogether` for the others, which are likely to be as slow. Otherwise a client that lists once, right after
 * `initialize`, would get an empty list.
 */
export async function waitForFirstTarget(session: Session, headers: readonly string[]): Promise<void> {
  const { connections, createdAt } = session;
  const remaining = createdAt + LIMITS.sessionBegin - performance.now();
  if (remaining <= 0 || connections.some(({ version }) => version !== undefined)) return;
  const attempts = connections.map((connection) => connection.ready(headers));
  const all = Promise.allSettled(attempts);
  const first = Promise.any(attempts).then(
    () => within(LIMITS.slowTogether, all),
    // All have failed; the response to the list request gives the reasons.
    () => undefined,
  );
  await within(remaining, first);
}

/** Resolves when the promise settles, at the latest after that many milliseconds. */
async function within(milliseconds: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, timedOut]).finally(() => clearTimeout(timer));
}

/** The first attempt to connect to one target. */
class Attempt {
  readonly connection: Connection;
  isPending = true;
  problem: unknown;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  get isConnected(): boolean {
    return !this.isPending && this.problem === undefined;
  }

  /** Never rejects. */
  async run(headers: readonly string[], observer: RequestObserver | undefined): Promise<void> {
    try {
      const ready = this.connection.ready(headers, true);
      await (observer === undefined ? ready : traced(observer, this.connection.target, ready));
    } catch (problem) {
      this.problem = problem;
    }
    this.isPending = false;
  }
}

const isConnectedstreamStatus = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'UpstreamStatusError';
