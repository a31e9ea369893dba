import { pathText } from '../../core/diagnostic.ts';
import type { AddressProbe, CommandProbe, MeasuredTool } from '../../server/kernel/probe.ts';
import { tokensOf } from '../../server/kernel/token-estimate.ts';
import { detailOf, UpstreamStatusError } from '../../server/mcp/connection/target-failure.ts';
import {
  type Check,
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  check,
  fail,
  notKnown,
  ok,
  skip,
  warn,
  withFigures,
} from './check.ts';
import { probesOf } from './probes.ts';
import { targetContext } from './target-context.ts';
import { Turns } from './turns.ts';

/**
 * Tokens of a list of tools from which search pays: a tenth of a context of 200,000 tokens, where Claude Code begins to search
 * itself (anthropics/claude-code#39279). Named in docs/guides/many-tools.md.
 */
const MANY_TOKENS = 20_000;

/** Definitions that are shown, longest first. */
const LONGEST = 10;

/** Lists the tools of every target as clients see them, and reports what the lists cost the context of a model. */
export const tools: CheckGroup = {
  name: 'tools',
  title: () => 'tokens of tools (estimated, four bytes each)',
  run(context) {
    if (!context.options.tools) return [];
    if (context.config === undefined) return [check('tools', notKnown)];
    if (!context.options.start)
      return [check('tools', skip('not listed, because that starts the targets (--start)'))];
    const turns = new Turns();
    const lists = targetsOf(context).map((target) => ({
      ...target,
      tools: listOf(target.probe, context, turns),
    }));
    if (lists.length === 0) return [check('tools', skip('no targets are configured'))];
    return [
      ...lists.map(({ probe, tools: list }) =>
        check(
          probe.name,
          list.then((found) => targetResult(probe, found)),
        ),
      ),
      ...totalsOf(lists),
      check('the longest definitions', Promise.all(lists.map((each) => each.tools)).then(longestOf)),
    ];
  },
};

type TargetProbe = CommandProbe | AddressProbe;

/** Tools of a target, or why they could not be listed. */
type Found = readonly MeasuredTool[] | Error;

/** The server shows its tools only to users who have signed in. */
class UsersSignIn extends Error {}

interface Listed {
  readonly backend: string;
  readonly probe: TargetProbe;
  readonly tools: Promise<Found>;
}

/** Every target once, also if several routes have its backend. */
function targetsOf(context: CheckContext): Omit<Listed, 'tools'>[] {
  const all = new Map<string, Omit<Listed, 'tools'>>();
  for (const { probe, path } of probesOf(context)) {
    if (probe.kind === 'models') continue;
    const backend = pathText(path);
    all.set(JSON.stringify([backend, probe.name]), { backend, probe });
  }
  return [...all.values()];
}

function listOf(probe: TargetProbe, { loaded, env, folder }: CheckContext, turns: Turns): Promise<Found> {
  return turns.run(async () => {
    const { config, source } = loaded;
    if (config === undefined) return new Error('the configuration is not valid');
    await using at = targetContext({ config, source, env, folder });
    try {
      return await probe.measureTools(at.context);
    } catch (error) {
      const isRefused = error instanceof UpstreamStatusError && [401, 403].includes(error.status);
      if (isRefused && probe.kind === 'address' && probe.signsIn)
        return new UsersSignIn(
          'not listed: users sign in at this server, and there is no token of a user here',
        );
      return new Error(detailOf(error));
    }
  });
}

function targetResult({ kind, name }: TargetProbe, found: Found): CheckResult {
  if (found instanceof UsersSignIn) return skip(`${name}   ${found.message}`);
  if (found instanceof Error)
    return fail(
      `${name}   ${found.message}`,
      kind === 'command'
        ? '`agctl check --only targets --start` says more'
        : 'start the server, or correct its address; one that needs the credential of a client cannot be listed here',
    );
  const { text, figures } = sizeOf(found);
  return withFigures(ok(`${name}   ${text}`), { target: name, ...figures });
}

/** A check for each backend, whose tools clients list together. */
function totalsOf(lists: readonly Listed[]): Check[] {
  const backends = [...Map.groupBy(lists, ({ backend }) => backend)];
  return backends.map(([backend, members]) => {
    const name = backends.length === 1 ? 'total' : `total of ${backend}`;
    return check(
      name,
      Promise.all(members.map((each) => each.tools)).then((all) => totalOf(name, members, all)),
    );
  });
}

function totalOf(name: string, members: readonly Listed[], all: readonly Found[]): CheckResult {
  const { text, figures } = sizeOf(all.flatMap((found) => (found instanceof Error ? [] : found)));
  const failed = members.filter((_each, index) => all[index] instanceof Error).map(({ probe }) => probe.name);
  const without = failed.length === 0 ? '' : `, without ${failed.join(', ')}`;
  const message = `${name}   ${text}${without}`;
  if (members.some(({ probe }) => probe.isSearched))
    return withFigures(
      ok(`${message}; clients list search_tools, call_tool and pinned tools only (toolSearch)`),
      figures,
    );
  if (figures.tokens <= MANY_TOKENS) return withFigures(ok(message), figures);
  return withFigures(
    warn(
      `${message}: more than ${shown(MANY_TOKENS)}`,
      'let models search for tools with `toolSearch` (docs/guides/many-tools.md), or leave some out with `tools.exclude` of the target',
    ),
    figures,
  );
}

/** The size of a list: its definitions, separated by commas, in brackets. */
function sizeOf(list: readonly MeasuredTool[]): { text: string; figures: { tools: number; tokens: number } } {
  if (list.length === 0) return { text: 'no tools', figures: { tools: 0, tokens: 0 } };
  const tokens = tokensOf(list.reduce((sum, { bytes }) => sum + bytes + 1, 1));
  const count = list.length === 1 ? '1 tool' : `${shown(list.length)} tools`;
  return { text: `${count}, ${shown(tokens)} tokens`, figures: { tools: list.length, tokens } };
}

function longestOf(all: readonly Found[]): CheckResult[] {
  return all
    .flatMap((found) => (found instanceof Error ? [] : found))
    .toSorted((one, other) => other.bytes - one.bytes)
    .slice(0, LONGEST)
    .map(({ name, bytes, longest: { member, bytes: part } }, index) => {
      const figures = {
        tool: name,
        tokens: tokensOf(bytes),
        longestPart: member,
        partTokens: tokensOf(part),
      };
      return withFigures(
        ok(
          `${index + 1}. longest: ${name}   ${shown(figures.tokens)} tokens, ${shown(figures.partTokens)} of them ${member}`,
        ),
        figures,
      );
    });
}

const format = new Intl.NumberFormat('en-US');
const shown = (count: number): string => format.format(count);
