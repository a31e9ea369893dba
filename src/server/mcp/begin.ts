import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Tracer } from '../observe/trace/tracer.ts';
import type { Connection } from './connection.ts';
import { noAnswer } from './in-time.ts';
import type { Session } from './session.ts';
import type { Target } from './target.ts';
import { detailOf, publicProblem, TargetFailure } from './target-failure.ts';
import { traced } from './traced.ts';

/**
 * Opens all connections of a new session at once. A target that fails, or is slower than `LIMITS.slowTarget` while
 * another one is up, is left out and joins later (`failOpen`). While none is up, the session waits on, as it does for
 * every target of a fail-closed backend, up to `LIMITS.sessionBegin`; then it fails with every reason.
 */
export async function connectAll(
  session: Session,
  headers: readonly string[],
  trace?: Tracer,
): Promise<void> {
  const { failClosed } = session.options;
  const attempts = session.connections.map((connection) => new Attempt(connection));
  await enough(attempts, headers, trace, failClosed);
  const missing = attempts.filter(({ isUp }) => !isUp);
  if (missing.length === 0) return;
  if (missing.length < attempts.length && !failClosed) {
    for (const { connection, isOpen } of missing) {
      if (!isOpen) continue;
      connection.isLate();
      slowLastTime.add(connection.target);
    }
    return;
  }
  const problems = missing.map(({ connection, isOpen, problem }) => ({
    target: connection.target.name,
    problem: isOpen ? connection.lateFailure(noAnswer(LIMITS.sessionBegin)) : problem,
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

/** Targets that a session began without. The next one gives them less time, until they have been fast again. */
const slowLastTime = new WeakSet<Target>();

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
  async run(headers: readonly string[], trace: Tracer | undefined): Promise<void> {
    try {
      const { target } = this.connection;
      const since = performance.now();
      const begun = this.connection.ready(headers, true);
      await (trace === undefined ? begun : traced(trace, target, begun));
      if (performance.now() - since < LIMITS.slowTarget) slowLastTime.delete(target);
    } catch (problem) {
      this.problem = problem;
    }
    this.isOpen = false;
  }
}

/** Waits until the session can begin, or until it is clear that it cannot. */
function enough(
  attempts: readonly Attempt[],
  headers: readonly string[],
  trace: Tracer | undefined,
  needsAll: boolean,
): Promise<void> {
  return new Promise((resolve) => {
    const timers: NodeJS.Timeout[] = [];
    const done = (): void => {
      for (const timer of timers) clearTimeout(timer);
      resolve();
    };
    let isSlow = false;
    let isKnown = false;
    const isOneUp = (): boolean => !needsAll && attempts.some(({ isUp }) => isUp);
    const areKnown = (): boolean =>
      attempts.every(({ isOpen, connection }) => !isOpen || slowLastTime.has(connection.target));
    const known = (): void => {
      isKnown = true;
      if (isOneUp() && areKnown()) done();
    };
    const slow = (): void => {
      isSlow = true;
      if (isOneUp()) done();
    };
    const settled = (): void => {
      if (attempts.every(({ isOpen }) => !isOpen)) done();
      else if (isKnown && isOneUp() && areKnown()) done();
      // Others that were as slow to begin are likely to be about to answer, too.
      else if (isSlow && isOneUp()) timers.push(setTimeout(done, LIMITS.slowTogether));
    };
    timers.push(
      setTimeout(known, LIMITS.slowTogether),
      setTimeout(slow, LIMITS.slowTarget),
      setTimeout(done, LIMITS.sessionBegin),
    );
    for (const attempt of attempts) void attempt.run(headers, trace).then(settled);
  });
}

const isUpstreamStatus = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'UpstreamStatusError';
