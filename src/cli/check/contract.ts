import { existsSync } from 'node:fs';
import { diffArrays } from 'diff';
import { pathText } from '../../core/diagnostic.ts';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { byForm } from '../../core/redact.ts';
import { counted } from '../../core/render/counted.ts';
import type { AddressProbe, CommandProbe } from '../../server/kernel/probe.ts';
import { detailOf, UpstreamStatusError } from '../../server/mcp/connection/target-failure.ts';
import {
  changedMembers,
  definitionOf,
  hashOf,
  type ToolDefinition,
} from '../../server/mcp/tool-pinning/definition.ts';
import { withVisible } from '../../server/mcp/tool-pinning/hidden-characters.ts';
import { type Pin, PinFile, pinOf } from '../../server/mcp/tool-pinning/pin-file.ts';
import {
  type Check,
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  type ContractFile,
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

/** Compares the tools of every target with a file of tool pins: what was reviewed is what clients get. */
export const contract: CheckGroup = {
  name: 'contract',
  title: ({ options }) => `tools, compared with ${options.contract?.shown ?? 'their pins'}`,
  run(context) {
    const { contract: file } = context.options;
    if (file === undefined) return [];
    if (context.config === undefined) return [check('contract', notKnown)];
    const accept = `agctl check -f ${context.file} --contract ${file.shown} --update`;
    if (!file.isUpdated && !existsSync(file.path))
      return [
        check(
          'contract',
          fail(`${file.shown} does not exist`, `write it with the tools as they are now: ${accept}`),
        ),
      ];
    const pins = new PinFile(file.path, SILENT_LOG);
    try {
      pins.load();
    } catch (error) {
      return [
        check('contract', fail(`${file.shown} cannot be read: ${messageOf(error)}`, 'repair the file')),
      ];
    }
    const turns = new Turns();
    const targets = targetsOf(context);
    if (targets.size === 0) return [check('contract', skip('no targets are configured'))];
    const listed = [...targets].map(([name, probes]) => ({
      name,
      tools: Promise.all(probes.map((probe) => listOf(probe, context, turns))).then(together),
    }));
    return file.isUpdated ? updated(listed, pins, file) : compared(listed, pins, file, accept);
  },
};

type TargetProbe = CommandProbe | AddressProbe;

/** Definitions of the tools of a target by name, or why they could not be listed. */
type Current = ReadonlyMap<string, ToolDefinition> | CheckResult;

interface Compared {
  readonly name: string;
  readonly tools: Promise<Current>;
}

/** Every target once, also if several routes have its backend. Those of the same name share their pins. */
function targetsOf(context: CheckContext): ReadonlyMap<string, readonly TargetProbe[]> {
  const all = new Map<string, TargetProbe>();
  for (const { probe, path } of probesOf(context))
    if (probe.kind !== 'models') all.set(JSON.stringify([pathText(path), probe.name]), probe);
  return Map.groupBy(all.values(), ({ name }) => name);
}

/** The tools of targets of the same name; why one of them could not be listed, if so. */
const together = (lists: readonly Current[]): Current =>
  lists.find((each) => !isListed(each)) ?? new Map(lists.filter(isListed).flatMap((each) => [...each]));

function listOf(probe: TargetProbe, { loaded, env, folder }: CheckContext, turns: Turns): Promise<Current> {
  return turns.run(async () => {
    const { config, source } = loaded;
    if (config === undefined) return notKnown;
    await using at = targetContext({ config, source, env, folder });
    try {
      const tools = await probe.definitions(at.context);
      return new Map(tools.map(({ own, text }) => [own, definitionOf(text)]));
    } catch (error) {
      const isRefused = error instanceof UpstreamStatusError && [401, 403].includes(error.status);
      return isRefused && probe.kind === 'address' && probe.signsIn
        ? warn(
            `${probe.name}   not compared: users sign in at this server, and there is no token of a user here`,
            'compare its tools in a gateway that users call: toolPinning',
          )
        : fail(`${probe.name}   ${detailOf(error)}`, '`agctl check --only targets --start` says more');
    }
  });
}

const isListed = (current: Current): current is ReadonlyMap<string, ToolDefinition> => current instanceof Map;

function compared(
  targets: readonly Compared[],
  pins: PinFile,
  { shown }: ContractFile,
  accept: string,
): Check[] {
  const fix = `review the changes, then accept them: ${accept}`;
  return targets.map(({ name, tools }) =>
    check(
      name,
      tools.then((current) => {
        // Pins that are compared with nothing hold nothing.
        if (!isListed(current))
          return current.status === 'warn' && pins.of(name).size > 0
            ? { ...current, status: 'fail' }
            : current;
        const differences = differencesOf(pins.of(name), current);
        if (differences.length === 0) return ok(`${name}   ${counted(current.size, 'tool')}, as in ${shown}`);
        const { text, figures } = summaryOf(differences);
        const result = withFigures(fail(`${name}   ${text}`, fix), { target: name, ...figures });
        return { ...result, details: differences.flatMap(linesOf).map((line) => byForm.text(line)) };
      }),
    ),
  );
}

/** Writes the file once all targets have been listed. Those that could not be listed keep their pins. */
function updated(targets: readonly Compared[], pins: PinFile, { shown }: ContractFile): Check[] {
  const before = new Map(targets.map(({ name }) => [name, pins.of(name)]));
  const written = Promise.all(targets.map(async ({ name, tools }) => ({ name, current: await tools }))).then(
    (all) => {
      const next = new Map<string, Map<string, Pin>>();
      for (const { name, current } of all) {
        if (!isListed(current)) continue;
        // Backends may have targets of the same name, which share their pins.
        const known = next.get(name) ?? new Map<string, Pin>();
        for (const [tool, definition] of current) known.set(tool, pinOf(definition, LIMITS));
        next.set(name, known);
      }
      pins.replace(next);
    },
  );
  const resultOf = async ({ name, tools }: Compared): Promise<CheckResult> => {
    const current = await tools;
    if (!isListed(current)) return current;
    try {
      await written;
    } catch (error) {
      return fail(
        `${name}   ${shown} cannot be written: ${messageOf(error)}`,
        'correct the path or its permissions',
      );
    }
    const differences = differencesOf(before.get(name) ?? new Map(), current);
    const text = differences.length === 0 ? 'unchanged' : summaryOf(differences).text;
    return ok(`${name}   ${counted(current.size, 'tool')} in ${shown}: ${text}`);
  };
  return targets.map((target) => check(target.name, resultOf(target)));
}

interface Difference {
  readonly tool: string;
  readonly kind: 'changed' | 'new' | 'removed';
  readonly members: ReturnType<typeof changedMembers>;
}

function differencesOf(
  pins: ReadonlyMap<string, Pin>,
  current: ReadonlyMap<string, ToolDefinition>,
): readonly Difference[] {
  const listed = [...current].flatMap(([tool, definition]): Difference[] => {
    const pin = pins.get(tool);
    if (pin === undefined) return [{ tool, kind: 'new', members: changedMembers({}, definition) }];
    // People review the definition: a hash beside it that is of another one proves nothing.
    const isReviewed = pin.definition === undefined || hashOf(pin.definition) === pin.hash;
    if (pin.hash === hashOf(definition) && isReviewed) return [];
    return [{ tool, kind: 'changed', members: changedMembers(pin.definition ?? {}, definition) }];
  });
  const removed = [...pins.keys()]
    .filter((tool) => !current.has(tool))
    .map((tool): Difference => ({ tool, kind: 'removed', members: [] }));
  return [...listed, ...removed];
}

function summaryOf(differences: readonly Difference[]): { text: string; figures: Record<string, number> } {
  const figures = { changed: 0, new: 0, removed: 0 };
  for (const { kind } of differences) figures[kind] += 1;
  const parts = Object.entries(figures).flatMap(([kind, count]) => (count === 0 ? [] : [`${count} ${kind}`]));
  return { text: parts.join(', '), figures };
}

/** Lines of a comparison for each tool, and characters of each line: more than of any definition that people review. */
const SHOWN_LINES = 2_000;
const SHOWN_LINE = 2_000;
/** Lines that may differ before the comparison is given up, which takes time by the square of them. */
const MOST_DIFFERENCES = 2_000;

function linesOf({ tool, kind, members }: Difference): readonly string[] {
  const lines = members.flatMap(({ member, before, after }) => [
    `  ${member}`,
    ...changedLines(before, after),
  ]);
  const more = lines.length - SHOWN_LINES;
  const shown = more > 1 ? [...lines.slice(0, SHOWN_LINES), `  … ${more} more lines`] : lines;
  // Someone edited the hash.
  const isHashOnly = kind === 'changed' && lines.length === 0;
  return [`${tool} (${kind}${isHashOnly ? ': its hash is that of another definition' : ''})`, ...shown].map(
    (line) =>
      withVisible(
        line.length > SHOWN_LINE ? `${line.slice(0, SHOWN_LINE)}…` : line,
        (code) => `\\u{${code.toString(16)}}`,
      ),
  );
}

function changedLines(before: string, after: string): readonly string[] {
  const split = (text: string): string[] => (text === '' ? [] : text.split('\n'));
  const parts = diffArrays(split(before), split(after), { maxEditLength: MOST_DIFFERENCES });
  if (parts === undefined) return ['    more changes than can be shown'];
  return parts.flatMap(({ added, removed, value }) =>
    added || removed ? value.map((line) => `    ${added ? '+' : '-'} ${line}`) : [],
  );
}
