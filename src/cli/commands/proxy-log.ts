import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { hasLogModule, LOG_MODULES } from '../../core/log-directives.ts';
import { nearest } from '../../core/suggest.ts';
import type { Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask, notAnAdmin } from '../proxy/admin-client.ts';
import { spanOption } from '../proxy/span.ts';

interface Options extends AdminOptions {
  readonly level?: string;
  readonly set?: readonly string[];
  readonly reset?: boolean;
  readonly for?: string;
  readonly output?: 'text' | 'json';
}

const LEVELS = ['error', 'warn', 'info', 'debug', 'trace', 'off'];

/**
 * Shows or changes the log levels of a running gateway. `--level` applies to all modules and resets earlier changes.
 * Upstream's server adds to earlier changes unless the request asks for a reset, which upstream's command never does.
 */
export const run: Run<Options> = async (options, context) => {
  const { level, set = [], reset = false, output } = options;
  if (level !== undefined && set.length > 0)
    throw new CommandError(
      'usage',
      '--level and --set are mutually exclusive',
      '--level applies to all modules, --set to one',
    );
  const directives = [
    ...(level === undefined ? [] : [levelName(level, '--level')]),
    ...set
      .flatMap((text) => text.split(','))
      // Upstream's command reads `a=info,` as one directive.
      .filter((part) => part.trim() !== '')
      .map(moduleLevel),
  ];
  const isChange = reset || directives.length > 0;
  if (options.for !== undefined && !isChange)
    throw new CommandError(
      'usage',
      '--for requires a change that it can revert',
      'agctl proxy log --level debug --for 10m',
    );
  const query = new URLSearchParams();
  if (reset || level !== undefined) query.set('reset', 'true');
  if (directives.length > 0) query.set('level', directives.join(','));
  const span = options.for === undefined ? undefined : await spanOption('--for', options.for);
  if (options.for !== undefined) query.set('for', options.for);
  const address = adminAddress(options, context);
  const search = query.toString();
  const { body } = await ask(address, {
    method: 'POST',
    path: `/logging${search === '' ? '' : `?${search}`}`,
  });
  const text = body.toString('utf8').trim();
  const [, current] = /^current log level is ([^\r\n]*?)(?: \(until [^)]*\))?(?:\r?\n|$)/.exec(text) ?? [];
  if (current === undefined) throw notAnAdmin(address.shown, 'its /logging does not answer with log levels');
  context.stdout.write(
    output === 'json'
      ? `${JSON.stringify(levels(current))}\n`
      : `${text.split('\n').map(escapeControls).join('\n')}\n`,
  );
  // A gateway that does not support the option keeps the level, and its response contains no time.
  if (span !== undefined && !/ \(until /.test(text))
    context.stderr.write(
      `the gateway did not confirm that it will revert this after ${options.for}; to revert it now: ${asCalled('agctl proxy log', context)} --reset\n`,
    );
  // Unknown modules are not refused, because a gateway of another version, or upstream's, has other modules.
  for (const directive of directives) {
    const [module = '', ofModule] = directive.split('=');
    if (ofModule !== undefined && !hasLogModule(module)) context.stderr.write(unknownModule(module));
  }
  return EXIT_CODES.ok.code;
};

function levelName(text: string, option: string): string {
  const level = text.toLowerCase();
  if (LEVELS.includes(level)) return level;
  const near = nearest(level, LEVELS);
  const shown = escapeControls(text);
  throw new CommandError(
    'usage',
    `${option}: unknown level "${shown}"${near === undefined ? '' : `; did you mean ${near}?`}`,
    `levels: ${LEVELS.join(', ')}`,
  );
}

/** Converts `module=level` for the request. Upstream's command sends a colon, which its own server refuses. */
function moduleLevel(text: string): string {
  const [, module, level] = /^\s*([^=,\s]+)=([^=,\s]+)\s*$/.exec(text) ?? [];
  if (module === undefined || level === undefined)
    throw new CommandError(
      'usage',
      `invalid --set value "${escapeControls(text)}": expected module=level`,
      LEVELS.includes(text.trim().toLowerCase())
        ? `for all modules: --level ${text.trim().toLowerCase()}`
        : 'for example --set proxy::httpproxy=trace',
    );
  return `${module}=${levelName(level, `--set ${escapeControls(module)}`)}`;
}

function unknownModule(module: string): string {
  const near = nearest(module, LOG_MODULES);
  const meant = near === undefined ? '' : `; did you mean ${near}?`;
  return `warning: agctl has no module ${escapeControls(module)}, so this has no effect${meant}\n  = help: modules: ${LOG_MODULES.join(', ')}\n`;
}

function levels(directives: string): { default: string | null; modules: Record<string, string> } {
  const clauses = directives.split(',').map((clause) => clause.split('='));
  const bare = clauses.find((parts) => parts.length === 1)?.[0];
  const modules = clauses.flatMap(([name, level]) =>
    name === undefined || level === undefined ? [] : [[name, level]],
  );
  return { default: bare === undefined || bare === '' ? null : bare, modules: Object.fromEntries(modules) };
}
