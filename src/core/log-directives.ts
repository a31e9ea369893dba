import { nearest } from './suggest.ts';

const DIRECTIVE_LEVELS = ['off', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type DirectiveLevel = (typeof DIRECTIVE_LEVELS)[number];

/** One clause: a level for everything (`target` is empty), or for the targets that begin so. */
export interface Directive {
  readonly target: string;
  readonly level: DirectiveLevel;
}

/** A text that is not a list of directives. `message` is the first line of what `POST /logging` answers. */
export class InvalidDirectives extends Error {
  /** The clause that is wrong, and what would be right. */
  readonly clause: string;
  readonly hint: string;

  constructor(text: string, clause: string) {
    super(`Invalid level provided: ${text}`);
    this.name = 'InvalidDirectives';
    this.clause = clause;
    const level = nearest(clause, DIRECTIVE_LEVELS);
    this.hint =
      level === undefined
        ? `expected a level (${DIRECTIVE_LEVELS.join(', ')}) or \`target=level\``
        : `did you mean \`${level}\`?`;
  }
}

/** What `POST /logging` adds to a refusal. */
export const LOG_LEVEL_HELP = `
usage: POST /logging (to list the current level)
usage: POST /logging?level=<level> (to change the level of everything)
usage: POST /logging?level={mod1}={level1},{mod2}={level2} (to change the level of modules)

hint: loglevel: error|warn|info|debug|trace|off
hint: mod_name: the scope of a log line, such as proxy::gateway, mcp or request
`;

/** `config.logging.level` and RUST_LOG both say `agentgateway::`; lines of text do not show it. */
const PREFIX = /^(?:agentgateway|agctl)(?:::|$)/;
const TARGET = /^[A-Za-z0-9_.-]+(?:::[A-Za-z0-9_.-]+)*$/;

/**
 * Reads comma-separated clauses: a level, or `target=level` or `target:level`. Levels in any case, after a target
 * also as 0 (off) to 5 (trace) or empty (error), as in Rust's env-filter.
 *
 * @throws InvalidDirectives
 */
export function parseDirectives(text: string): Directive[] {
  return text.split(',').map((clause) => {
    const directive = parseClause(clause.trim());
    if (directive === undefined) throw new InvalidDirectives(text, clause.trim());
    return directive;
  });
}

function parseClause(clause: string): Directive | undefined {
  const bare = levelOf(clause);
  if (bare !== undefined) return { target: '', level: bare };
  // `a::b` holds no single colon, `a::b:debug` one.
  const match = /^(.*?)(?:=|(?<!:):(?!:))([A-Za-z0-9]*)$/.exec(clause);
  if (match === null) return undefined;
  const [, target = '', word = ''] = match;
  const level =
    word === '' ? 'error' : (DIRECTIVE_LEVELS[/^[0-5]$/.test(word) ? Number(word) : -1] ?? levelOf(word));
  return level === undefined || !TARGET.test(target) ? undefined : { target, level };
}

function levelOf(word: string): DirectiveLevel | undefined {
  const lower = word.toLowerCase();
  return DIRECTIVE_LEVELS.find((level) => level === lower);
}

/** `agentgateway::mcp` and `mcp` are the same target. */
const bareName = (target: string): string => target.replace(PREFIX, '');

/** Clauses with the same key replace each other. `agentgateway` alone is all of our lines, and yet not the bare level. */
export function directiveKey({ target }: Directive): string {
  return bareName(target) || target;
}

/**
 * Which lines are logged: levels per target, changed while running. Targets match by their beginning, with and
 * without the prefix `agentgateway::` or `agctl::`; the longest one that matches decides. Without one, nothing is
 * logged.
 */
export class LogDirectives {
  readonly #initial: readonly Directive[];
  #directives: readonly Directive[];
  /** Levels by scope, looked up once: scopes are names in the code, so there are few. */
  readonly #known = new Map<string, number>();
  /** Another number after every change. */
  version = 0;
  /** Called after every change with the current clauses. */
  onChange: ((current: string) => void) | undefined;

  /** @throws InvalidDirectives */
  constructor(initial: string) {
    this.#initial = merged([], parseDirectives(initial));
    this.#directives = this.#initial;
  }

  /** Adds clauses to the current ones; those of the same target are replaced. @throws InvalidDirectives */
  add(text: string): void {
    this.#set(merged(this.#directives, parseDirectives(text)));
  }

  /** Back to what was given at the start. */
  reset(): void {
    this.#set(this.#initial);
  }

  /** These clauses and no others. @throws InvalidDirectives */
  replace(text: string): void {
    this.#set(merged([], parseDirectives(text)));
  }

  /** The clauses by `directiveKey`. */
  byKey(): ReadonlyMap<string, Directive> {
    return new Map(this.#directives.map((directive) => [directiveKey(directive), directive]));
  }

  /** Puts single clauses back, by `directiveKey`: undefined takes one away. The others stay. */
  restore(clauses: ReadonlyMap<string, Directive | undefined>): void {
    const kept = this.#directives.filter((directive) => !clauses.has(directiveKey(directive)));
    this.#set(
      merged(
        kept,
        [...clauses.values()].filter((directive) => directive !== undefined),
      ),
    );
  }

  #set(directives: readonly Directive[]): void {
    this.#directives = directives;
    this.#known.clear();
    this.version += 1;
    this.onChange?.(this.current);
  }

  /** All clauses as text, the longest target first and the bare level last. */
  get current(): string {
    return this.#directives
      .map(({ target, level }) => (target === '' ? level : `${target}=${level}`))
      .join(',');
  }

  /** Whether a line of this scope and level is logged. */
  allows(scope: string, level: DirectiveLevel): boolean {
    let threshold = this.#known.get(scope);
    if (threshold === undefined) {
      threshold = DIRECTIVE_LEVELS.indexOf(this.#levelFor(bareName(scope)));
      this.#known.set(scope, threshold);
    }
    return DIRECTIVE_LEVELS.indexOf(level) <= threshold;
  }

  #levelFor(scope: string): DirectiveLevel {
    let best: Directive | undefined;
    for (const directive of this.#directives) {
      const target = bareName(directive.target);
      // The bare level comes last, and counts only where no target matches.
      if (scope.startsWith(target) && (best === undefined || target.length > bareName(best.target).length))
        best = directive;
    }
    return best?.level ?? 'off';
  }
}

function merged(before: readonly Directive[], added: readonly Directive[]): Directive[] {
  const byTarget = new Map<string, Directive>();
  for (const directive of [...before, ...added]) {
    byTarget.set(directiveKey(directive), directive);
  }
  return [...byTarget.values()].sort(
    (a, b) => b.target.length - a.target.length || (a.target < b.target ? -1 : 1),
  );
}

/** What lines of the gateway's log come from: every scope in the code, and `request`, the access log. */
export const LOG_MODULES: readonly string[] = [
  'admin',
  'agctl',
  'agctl::database',
  'agctl::reload',
  'audit',
  'auth',
  'config',
  'llm',
  'llm::guardrail',
  'mcp',
  'mcp::call',
  'mcp::guardrail',
  'mcp::http',
  'mcp::openapi',
  'mcp::session',
  'mcp::sign-in',
  'mcp::sse',
  'mcp::stdio',
  'proxy::budgets',
  'proxy::gateway',
  'proxy::httpproxy',
  'proxy::mirror',
  'proxy::policy',
  'proxy::rate_limit',
  'proxy::tcp',
  'proxy::tls',
  'proxy::upstream',
  'request',
  'telemetry::log',
  'telemetry::metrics',
  'telemetry::trace',
];

/** Whether a level for this target changes anything: it is a module, or the beginning of one. */
export function hasLogModule(target: string): boolean {
  const beginning = bareName(target);
  return LOG_MODULES.some((module) => bareName(module).startsWith(beginning));
}
