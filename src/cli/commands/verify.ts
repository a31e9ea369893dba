import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { counted } from '../../core/render/counted.ts';
import type { Cassette } from '../../library/cassette/format.ts';
import { IgnoredPathError } from '../../library/cassette/ignored.ts';
import { type Verified, type VerifySettings, verify } from '../../library/cassette/verify/verify.ts';
import { GatewayNamesError, urlsFor, verifyConfig } from '../../library/cassette/verify/verify-config.ts';
import { ConfigError } from '../../library/config-error.ts';
import { read } from '../cassette/read.ts';
import { type Context, type Run, wantsColor } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { type DiagnosticFormat, renderDiagnostics } from '../render/diagnostics.ts';

interface Options {
  readonly operands?: readonly string[];
  readonly file?: string;
  readonly against?: readonly string[];
  readonly header?: readonly string[];
  readonly ignore?: readonly string[];
  readonly strict?: boolean;
  readonly output: DiagnosticFormat;
  readonly color: string;
}

/** Sends the requests of a recording, and reports what differs. */
export const run: Run<Options> = async (options, context) => {
  const { operands = [], header = [], ignore = [], strict: isStrict = false } = options;
  const [file = ''] = operands;
  const started = performance.now();
  const cassette = read(file, context.cwd);
  const { env } = options.file === undefined ? context : forConfig(context, options.file);
  const headers = Object.fromEntries(header.map((line) => headerOf(line, env)));
  const settings = { headers, ignore, isStrict };
  const verified = await compare(cassette, options, settings, { ...context, env });
  print(verified, options, context);
  const count = (severity: string) =>
    verified.diagnostics.filter((each) => each.severity === severity).length;
  const [errors, warnings] = [count('error'), count('warning')];
  if (options.output === 'text')
    context.stderr.write(
      `${file}: ${verified.same} of ${counted(verified.sent, 'request')} as recorded, ${counted(errors, 'error')}, ${counted(warnings, 'warning')} in ${Math.round(performance.now() - started)} ms\n`,
    );
  const isFailed = errors > 0 || (isStrict && warnings > 0);
  return isFailed ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
};

type Settings = Omit<VerifySettings, 'urls'>;

async function compare(
  cassette: Cassette,
  { file, against }: Options,
  settings: Settings,
  context: Pick<Context, 'env' | 'cwd'>,
): Promise<Verified> {
  if ((file === undefined) === (against === undefined))
    throw new CommandError('usage', 'expected --against or -f: what to compare with');
  try {
    if (file !== undefined) {
      const { env, cwd } = context;
      return await verifyConfig(cassette, resolve(cwd, file), env, settings);
    }
    const urls = urlsFor(cassette, urlsOf(against ?? [], cassette));
    await expectAnswers(Object.values(urls));
    return await verify(cassette, { ...settings, urls });
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError('usage', error.message);
    if (error instanceof GatewayNamesError) throw new CommandError('usage', error.message);
    if (file !== undefined && /^(?:ENOENT|EACCES|EISDIR)$/.test(errorCode(error)))
      throw new CommandError('usage', `${file} cannot be read: ${messageOf(error)}`);
    if (error instanceof IgnoredPathError) throw new CommandError('usage', `--ignore ${error.message}`);
    throw error;
  }
}

/** Of `URL` or `NAME=URL`. @throws CommandError */
function urlsOf(against: readonly string[], { head }: Cassette): Record<string, string> {
  return Object.fromEntries(
    against.map((text) => {
      const [, name = head.gateways[0]?.name ?? '', url = ''] = /^(?:([^=/]+)=)?(.*)$/.exec(text) ?? [];
      if (/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return [name, url];
      throw new CommandError(
        'usage',
        `--against: expected a URL such as http://127.0.0.1:3000, found ${text}`,
      );
    }),
  );
}

/** @throws CommandError if nothing listens: each request would say so */
async function expectAnswers(urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    try {
      await fetch(url, { method: 'HEAD', redirect: 'manual' });
    } catch {
      throw new CommandError('unreachable', `nothing answers at ${url}`);
    }
  }
}

/** `name: value`, in whose value `$NAME` stands for a variable. @throws CommandError */
function headerOf(line: string, env: Context['env']): [name: string, value: string] {
  const [, name, text = ''] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(line) ?? [];
  if (name === undefined)
    throw new CommandError('usage', "--header: expected 'name: value', such as 'authorization: Bearer $KEY'");
  const value = text.replaceAll(/\$(?:(\w+)|\{(\w+)\})/g, (_, bare?: string, braced?: string) => {
    const variable = bare ?? braced ?? '';
    const known = env[variable];
    if (known === undefined)
      throw new CommandError('usage', `--header ${name}: the variable ${variable} is not set`);
    return known;
  });
  return [name.toLowerCase(), value];
}

function print({ diagnostics }: Verified, { output, color }: Options, context: Context): void {
  const isMachine = output !== 'text';
  const stream = isMachine ? context.stdout : context.stderr;
  const text = renderDiagnostics(diagnostics, new Map(), {
    format: output,
    color: !isMachine && wantsColor(stream, color, context.env),
    width: stream.columns ?? 100,
  });
  if (text !== '') stream.write(`${text}\n`);
}
