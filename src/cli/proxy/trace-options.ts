import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import { nearest } from '../../core/suggest.ts';
import { parse } from '../../server/expressions/cel/engine.ts';
import { CelSyntaxError } from '../../server/expressions/cel/errors.ts';
import type { Context } from '../context.ts';
import { type AdminAddress, type AdminOptions, adminAddress, portNumber } from './address.ts';
import { FAIL_ON, type FailOn } from './fail-on.ts';
import { ownRequest } from './own-request.ts';
import { spanOption } from './span.ts';
import type { TraceRequest } from './trace-session.ts';

/** The options as given by the user. */
export interface TraceOptions extends AdminOptions {
  readonly match?: string | undefined;
  readonly expression?: string | undefined;
  readonly count: string;
  readonly timeout?: string;
  readonly port?: string;
  readonly raw?: boolean;
  readonly plain?: boolean;
  readonly failOn?: string;
  readonly save?: string;
  readonly file?: string;
  readonly color: string;
  readonly operands?: readonly string[];
}

/** The validated options. */
export interface TracePlan {
  readonly form: 'raw' | 'text' | 'screen';
  readonly source:
    | { readonly file: string }
    | { readonly address: AdminAddress; readonly request: TraceRequest };
  readonly count: number;
  readonly failOn: readonly FailOn[];
  readonly save: string | undefined;
}

/**
 * Validates the options.
 *
 * @throws CommandError with exit name `usage` for contradictory or invalid options
 */
export async function planTrace(given: TraceOptions, context: Context): Promise<TracePlan> {
  // An empty expression counts as none, as in upstream's command.
  const options = { ...given, match: given.match || undefined, expression: given.expression || undefined };
  const { file, operands = [], save } = options;
  const common = { form: formOf(options, context), count: countOf(options), failOn: failOnOf(options), save };
  if (file === undefined) {
    const match = matchOf(options);
    const own = operands.length === 0 ? undefined : await ownOf(operands, context.cwd);
    const port = options.port === undefined ? undefined : portNumber(options.port);
    if (options.port !== undefined && port === undefined)
      throw new CommandError(
        'usage',
        `invalid --port ${escapeControls(options.port)}`,
        'expected a number from 1 to 65535',
      );
    if (port !== undefined && own === undefined)
      throw new CommandError(
        'usage',
        '--port requires a request URL after --',
        'agctl proxy trace --port 3000 -- http://example.com/mcp',
      );
    const address = adminAddress(options, context);
    return {
      ...common,
      source: { address, request: { match, own, port, wait: await waitOf(options, common.form) } },
    };
  }
  const extra =
    operands.length > 0
      ? 'a request after --'
      : (['local', 'admin', 'match', 'expression', 'port', 'save'] as const).find(
          (name) => options[name] !== undefined,
        );
  if (extra !== undefined)
    throw new CommandError(
      'usage',
      `--file does not accept ${extra.startsWith('a ') ? extra : `--${extra}`}`,
      'a saved trace is only displayed',
    );
  return { ...common, source: { file } };
}

function formOf({ raw, plain }: TraceOptions, { stdout, env }: Context): TracePlan['form'] {
  if (raw) return 'raw';
  const isTerminal = stdout.isTTY === true && process.stdin.isTTY === true && env['TERM'] !== 'dumb';
  const wantsText = plain === true || (env['INK_SCREEN_READER'] ?? '') === 'true';
  return isTerminal && !wantsText ? 'screen' : 'text';
}

function countOf({ count }: TraceOptions): number {
  if (!/^[1-9]\d{0,5}$/.test(count))
    throw new CommandError('usage', `invalid --count ${escapeControls(count)}`, 'expected a positive number');
  return Number(count);
}

function failOnOf({ failOn }: TraceOptions): FailOn[] {
  return (failOn ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
    .map((word) => {
      const known = FAIL_ON.find((name) => name === word);
      if (known !== undefined) return known;
      const near = nearest(word, FAIL_ON);
      throw new CommandError(
        'usage',
        `--fail-on: unknown condition "${escapeControls(word)}"${near === undefined ? '' : `; did you mean ${near}?`}`,
        `conditions: ${FAIL_ON.join(', ')}`,
      );
    });
}

function matchOf({ match, expression }: TraceOptions): string | undefined {
  if (match !== undefined && expression !== undefined && match !== expression)
    throw new CommandError('usage', '--match and --expression are the same option', 'use one of them');
  const given = match ?? expression;
  if (given !== undefined) checkSyntax(given);
  return given;
}

/** Only whether it is an expression: a gateway of another version may know other variables and functions. */
function checkSyntax(expression: string): void {
  try {
    parse(expression);
  } catch (error) {
    if (!(error instanceof CelSyntaxError)) throw error;
    if (error.code === 'AGW0201')
      throw new CommandError('usage', escapeControls(`invalid expression: ${error.message}`), error.help);
  }
}

async function ownOf(operands: readonly string[], cwd: string): Promise<TraceRequest['own']> {
  const [first = ''] = operands;
  if (/^(?:gateway|gw|deployment|deploy|pod|po|service|svc|rs|sts|ds)\//.test(first))
    throw new CommandError(
      'usage',
      `${escapeControls(first)} is a Kubernetes resource, which is not supported`,
      'use --admin with the address of its admin server',
    );
  return ownRequest(operands, cwd);
}

/** A user at a terminal sees that nothing happens; a script does not. */
async function waitOf({ timeout }: TraceOptions, form: TracePlan['form']): Promise<number | undefined> {
  if (timeout !== undefined) return spanOption('--timeout', timeout);
  return form === 'screen' ? undefined : LIMITS.traceRequestTimeout;
}
