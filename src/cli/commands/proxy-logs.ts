import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls, escapeInJson } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { spansText } from '../../core/render/span.ts';
import { requestLineSpans } from '../../core/requests/line.ts';
import { type Context, type Run, wantsColor } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { print } from '../proxy/print.ts';
import { type FedRequest, followRequests, keptRequests } from '../proxy/request-feed.ts';
import {
  type FilterTexts,
  InvalidStatusFilter,
  type RequestFilter,
  requestFilter,
} from '../proxy/request-filter.ts';
import { spanOption } from '../proxy/span.ts';

interface Options extends AdminOptions, FilterTexts {
  readonly follow?: boolean;
  readonly since?: string;
  readonly tail?: string;
  readonly output: 'text' | 'json';
  readonly color: string;
}

/** Requests that `--follow` shows at first, as in `tail -f`. */
const FOLLOWED_TAIL = 10;

/** Prints the last requests of a gateway, and with `--follow` every further one. */
export const run: Run<Options> = async (options, context) => {
  const address = adminAddress(options, context);
  const matches = filterOf(options);
  const since = await sinceOf(options);
  const tail = tailOf(options) ?? (options.follow === true ? FOLLOWED_TAIL : Number.POSITIVE_INFINITY);
  const lineOf = printer(options, context);
  const isShown = ({ fields, at }: FedRequest): boolean => at >= since && matches(fields);
  const kept = await keptRequests(address);
  const found = kept.filter(isShown);
  await print(context.stdout, found.slice(Math.max(0, found.length - tail)).map(lineOf));
  if (options.follow !== true) {
    if (found.length === 0)
      context.stderr.write(
        kept.length === 0
          ? 'no requests yet\n'
          : `none of the last ${counted(kept.length, 'request')} match\n`,
      );
    return EXIT_CODES.ok.code;
  }
  const stop = new AbortController();
  let hasReader = true;
  const leave = (): void => {
    hasReader = false;
    stop.abort();
  };
  process.once('SIGINT', () => stop.abort());
  context.stdout.once('close', leave).once('error', leave);
  let isLost = false;
  await followRequests(
    address,
    {
      request: (request) => {
        if (isShown(request)) context.stdout.write(lineOf(request));
      },
      connected: () => {
        if (isLost) context.stderr.write(`${address.shown} is back\n`);
        isLost = false;
      },
      lost: ({ message }) => {
        if (!isLost) context.stderr.write(`${message}; waiting until it is back\n`);
        isLost = true;
      },
    },
    stop.signal,
    kept.at(-1),
  );
  return hasReader ? EXIT_CODES.interrupted.code : EXIT_CODES.ok.code;
};

function filterOf(options: FilterTexts): RequestFilter {
  try {
    return requestFilter(options);
  } catch (error) {
    if (!(error instanceof InvalidStatusFilter)) throw error;
    throw new CommandError(
      'usage',
      `invalid --status: ${escapeControls(error.message)}`,
      'expected statuses such as 404, classes such as 5xx, or error (failed, whatever the status), separated by commas',
    );
  }
}

/** In ms since 1970. */
async function sinceOf({ since }: Options): Promise<number> {
  if (since === undefined) return 0;
  if (/^\d{4}-\d\d-\d\d/.test(since)) {
    const at = Date.parse(since);
    if (!Number.isNaN(at)) return at;
    throw new CommandError(
      'usage',
      `--since ${escapeControls(since)} is not a time`,
      'for example 2026-01-31T12:00:00Z, or 10m for the last ten minutes',
    );
  }
  return Date.now() - (await spanOption('--since', since));
}

function tailOf({ tail }: Options): number | undefined {
  if (tail === undefined) return undefined;
  if (/^\d{1,9}$/.test(tail)) return Number(tail);
  throw new CommandError('usage', `invalid --tail ${escapeControls(tail)}`, 'expected a number');
}

function printer({ output, color }: Options, { stdout, env }: Context): (request: FedRequest) => string {
  const isTerminal = stdout.isTTY === true;
  if (output === 'json') return ({ text }) => `${isTerminal ? escapeInJson(text) : text}\n`;
  const hasColor = wantsColor(stdout, color, env);
  return ({ fields, at }) =>
    `${spansText(requestLineSpans(fields, { at, now: Date.now(), columns: isTerminal ? stdout.columns : undefined }), hasColor)}\n`;
}
