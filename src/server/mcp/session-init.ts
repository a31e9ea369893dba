import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { RequestObserver } from '../kernel/observer.ts';
import type { Connection } from './connection.ts';
import type { Session } from './session.ts';
import { detailOf, publicProblem, TargetFailure } from './target-failure.ts';
import { timeoutMessage } from './timeouts.ts';
import { traced } from './traced.ts';

/**
 * Opens all connections of a new session at once. A target that fails, or has not answered within `LIMITS.slowBegin`, is
 * left out and joins later (`failOpen`); when all have failed, the session fails with every reason. A session with a
 * single target, or with a fail-closed backend, is nothing without it, and waits up to `LIMITS.sessionBegin`.
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
  const missing = attempts.filter(({ isUp }) => !isUp);
  if (missing.length === 0) return;
  if (!needsAll && attempts.some(({ isUp, isOpen }) => isUp || isOpen)) {
    for (const { connection, isOpen } of missing) if (isOpen) connection.isLate();
    return;
  }
  const problems = missing.map(({ connection, isOpen, problem }) => ({
    target: connection.target.name,
    problem: isOpen ? connection.lateFailure(timeoutMessage(LIMITS.sessionBegin)) : problem,
  }));
  const known = problems.find(({ problem }) => problem instanceof AppError);
  if (known !== undefined) throw known.problem;
  const [first] = problems;
  if (attempts.length === 1 && isUpstreamStatus(first?.problem)) throw first.problem;
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
 * For lists of a session that began without any target: waits for the first one, and then a little for the others, which
 * are likely to be as slow. A client that lists once, right after `initialize`, would otherwise be told of no tools.
 */
export async function firstUp(session: Session, headers: readonly string[]): Promise<void> {
  const { connections, begun } = session;
  const patience = begun + LIMITS.sessionBegin - performance.now();
  if (patience <= 0 || connections.some(({ version }) => version !== undefined)) return;
  const attempts = connections.map((connection) => connection.ready(headers));
  const all = Promise.allSettled(attempts);
  const first = Promise.any(attempts).then(
    () => within(LIMITS.slowTogether, all),
    // All have failed; the list says why.
    () => undefined,
  );
  await within(patience, first);
}

/** Resolves with the promise, or after that many milliseconds. */
async function within(milliseconds: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The first try to connect to one target. */
class Attempt {
  readonly connection: Connection;
  isOpen = true;
  problem: unknown;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  get isUp(): boolean {
    return !this.isOpen && this.problem === undefined;
  }

  /** Never rejects. */
  async run(headers: readonly string[], observer: RequestObserver | undefined): Promise<void> {
    try {
      const begun = this.connection.ready(headers, true);
      await (observer === undefined ? begun : traced(observer, this.connection.target, begun));
    } catch (problem) {
      this.problem = problem;
    }
    this.isOpen = false;
  }
}

const isUpstreamStatus = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'UpstreamStatusError';
