import { AppError } from '../../../core/errors.ts';
import { isRecord, textIn } from '../../../core/foreign.ts';
import { VERSION } from '../../../core/version.ts';
import { edit, valueAt, withText } from '../../kernel/json/json-text.ts';
import type { RequestObserver } from '../../kernel/observer.ts';
import { traced } from '../connection/call-trace.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import type { Connection } from '../connection/connection.ts';
import {
  detailOf,
  publicProblem,
  signInOf,
  TargetFailure,
  timeoutMessage,
} from '../connection/target-failure.ts';
import { withoutNulls } from '../protocol/absent-members.ts';
import { type InitializeResult, lowestRevision, UNANNOUNCED } from '../protocol/initialize-result.ts';
import type { RpcMessage } from '../protocol/message.ts';
import {
  LATEST_SESSION_REVISION,
  RPC,
  RpcError,
  resultMessage,
  SESSION_REVISIONS,
} from '../protocol/protocol.ts';
import { announcingResources, withResources } from '../result-limits/announced.ts';
import type { Session } from './session.ts';

/**
 * Opens all connections of a new session in parallel. A target that fails, or has not answered within `LIMITS.slowTargetStartWait`,
 * joins the session later (`failOpen`). If all targets fail, `mcp_session_failed` is thrown with every reason. A session with
 * a single target or a `failClosed` backend needs all targets and waits up to `LIMITS.sessionStartTimeout`.
 */
export async function connectAll(
  session: Session,
  headers: ClientHeaders,
  observer?: RequestObserver,
): Promise<void> {
  const { connections } = session;
  const needsAll = session.options.failClosed || connections.length === 1;
  const attempts = connections.map((connection) => new Attempt(connection));
  const all = Promise.all(attempts.map((attempt) => attempt.run(headers, observer)));
  await within(
    needsAll ? session.options.limits.sessionStartTimeout : session.options.limits.slowTargetStartWait,
    all,
  );
  // Clients show the link with the first call: most show nothing of a session that has failed.
  const missing = attempts.filter(
    ({ isConnected, problem }) => !isConnected && signInOf(problem) === undefined,
  );
  if (missing.length === 0) return;
  if (
    !needsAll &&
    attempts.some(
      (attempt) => attempt.isConnected || attempt.isPending || signInOf(attempt.problem) !== undefined,
    )
  ) {
    for (const { connection, isPending } of missing) if (isPending) connection.markLate();
    return;
  }
  const problems = missing.map(({ connection, isPending, problem }) => ({
    target: connection.target.name,
    problem: isPending
      ? connection.timeoutFailure(timeoutMessage(session.options.limits.sessionStartTimeout))
      : problem,
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
 * For list requests of a session that started without any target: waits for the first target, and then up to
 * `LIMITS.listGracePeriod` for the others, which are likely to be as slow. Otherwise a client that lists once, right after
 * `initialize`, would get an empty list.
 */
export async function waitForFirstTarget(session: Session, headers: ClientHeaders): Promise<void> {
  const { connections, createdAt } = session;
  const remaining = createdAt + session.options.limits.sessionStartTimeout - performance.now();
  if (remaining <= 0 || connections.some(({ version }) => version !== undefined)) return;
  const attempts = connections.map((connection) => connection.ready(headers));
  const all = Promise.allSettled(attempts);
  const first = Promise.any(attempts).then(
    () => within(session.options.limits.listGracePeriod, all),
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
  async run(headers: ClientHeaders, observer: RequestObserver | undefined): Promise<void> {
    try {
      const ready = this.connection.ready(headers, true);
      await (observer === undefined ? ready : traced(observer, this.connection.target, ready));
    } catch (problem) {
      this.problem = problem;
    }
    this.isPending = false;
  }
}

const isUpstreamStatus = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'UpstreamStatusError';

/**
 * Returns the `params` of an `initialize` request as JSON text for the targets. A revision that the gateway does not know is
 * replaced by the latest one: a target could agree to it. Throws `RpcError` without a `protocolVersion`.
 */
export function initializeParams(message: RpcMessage): string {
  const { params, text } = message;
  const { protocolVersion } = params;
  if (typeof protocolVersion !== 'string') {
    throw new RpcError(
      RPC.invalidParams,
      'expected params.protocolVersion to be a string, as in "2025-11-25"',
    );
  }
  const span = valueAt(text, ['params']);
  const own = span === undefined ? '{}' : text.slice(span.start, span.end);
  const version = valueAt(own, ['protocolVersion']);
  if (version === undefined || SESSION_REVISIONS.some((known) => known === protocolVersion)) return own;
  return edit(own, [{ ...version, text: JSON.stringify(LATEST_SESSION_REVISION) }]);
}

/**
 * Creates the response to `initialize`: the response of a single target except for the id, or a merged one for several.
 * `text` is the response for the client, `version` the negotiated protocol revision.
 */
export async function initializeResponse(
  session: Session,
  request: RpcMessage,
): Promise<{ text: string; version: string }> {
  const ready = session.connections.filter(({ rpc }) => rpc !== undefined);
  const [only] = ready;
  if (session.connections.length === 1 && only !== undefined) {
    const { message, result } = await only.ready(NO_HEADERS);
    const own = withoutNulls(message.text, 'result', message.result);
    const idSpan = valueAt(own, ['id']);
    const text = idSpan === undefined ? own : edit(own, [{ ...idSpan, text: request.id ?? 'null' }]);
    return {
      text: session.keptResults === undefined ? text : announcingResources(text),
      version: result.protocolVersion,
    };
  }
  const results = await Promise.all(
    ready.map(async (connection) => ({ connection, ...(await connection.ready(NO_HEADERS)) })),
  );
  const version = lowestRevision([
    textIn(request.params['protocolVersion']),
    ...results.map(({ result }) => result.protocolVersion),
  ]);
  const capabilities = mergedCapabilities(
    results.map(({ result }) => result),
    ready.length < session.connections.length,
  );
  const merged = {
    protocolVersion: version,
    capabilities: session.keptResults === undefined ? capabilities : withResources(capabilities),
    serverInfo: { name: 'agctl', version: VERSION },
    instructions: instructions(results, session.options.prefixed),
  };
  const text = resultMessage(request.id ?? 'null', JSON.stringify(merged));
  return { text: withoutNulls(text, 'result', merged), version };
}

/** A response to `initialize` or `server/discover` with other instructions, if there are any. */
export function withInstructions(text: string, instructions: string | undefined): string {
  const result = valueAt(text, ['result']);
  if (instructions === undefined || result === undefined) return text;
  const own = text.slice(result.start, result.end);
  return edit(text, [{ ...result, text: withText(own, 'instructions', instructions) }]);
}

/** Assumed for a target that joins later: clients only request lists, and accept changes, that were announced. */
const ASSUMED = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true },
};

const MERGED = [
  'tools',
  'prompts',
  'resources',
  'logging',
  'completions',
  'tasks',
  'experimental',
  'extensions',
] as const;

/** Their lists change when a target joins late or restarts, even if no target announces `listChanged`. */
const LISTS = new Set<string>(['tools', 'prompts', 'resources']);

type Json = Readonly<Record<string, unknown>>;

/**
 * Union of the targets' capabilities, at every depth. If two targets have different values, such as the version of an
 * extension, the value of the first target is used; `false` is overridden by any other value. `someAreMissing`: a target joins
 * later.
 */
export function mergedCapabilities(
  results: readonly Pick<InitializeResult, 'capabilities'>[],
  someAreMissing: boolean,
): Json {
  const all: typeof results = someAreMissing ? [...results, { capabilities: ASSUMED }] : results;
  const merged = MERGED.flatMap((key) => {
    // Of the lists that a server may have without saying so, hardly any is not one of tools.
    const values = all
      .map(({ capabilities }) => capabilities?.[key])
      .filter(isRecord)
      .filter((value) => key === 'tools' || value !== UNANNOUNCED);
    if (values.length === 0) return [];
    const value = values.reduce<Json>(union, {});
    return [[key, LISTS.has(key) ? { ...value, listChanged: true } : value] as const];
  });
  return Object.fromEntries(merged);
}

/** Deep union of two objects. `Object.fromEntries` treats a member named `__proto__` like any other. */
function union(first: Json, second: Json): Json {
  const all = new Map(Object.entries(first));
  for (const [key, value] of Object.entries(second)) {
    const known = all.get(key);
    if (value === false && known !== undefined) continue;
    if (isRecord(value)) all.set(key, union(isRecord(known) ? known : {}, value));
    else if (known === undefined || known === false) all.set(key, value);
  }
  return Object.fromEntries(all);
}

/** Instructions for the model: those of all targets, each under the target's name. */
export function instructions(
  results: readonly { connection: Connection; result: InitializeResult }[],
  prefixed: boolean,
): string {
  const preamble = prefixed
    ? 'This server is a gateway to several MCP servers. Tools and prompts are named target_name, resources target+uri.'
    : 'This server is a gateway to several MCP servers.';
  const blocks = results.flatMap(({ connection, result }) =>
    typeof result.instructions === 'string' ? [`[${connection.target.name}]\n${result.instructions}`] : [],
  );
  return [preamble, ...blocks].join('\n\n');
}
