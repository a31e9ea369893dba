import { spawn } from 'node:child_process';
import { env } from 'node:process';
import { json, text } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import type { ChatRequest, Part, Turn } from '../../../src/server/llm/chat/chat.ts';
import type { Json } from '../../../src/server/llm/chat/chat-format.ts';
import { parseArguments } from '../../../src/server/llm/chat/tool-arguments.ts';
import { joinTexts, mergeTurns } from '../../../src/server/llm/chat/turns.ts';
import {
  casesIn,
  FORMATS,
  formatOf,
  type Key,
  outcomeOf,
  TARGET,
} from '../../server/llm/translation/cases.ts';
import { DIFFERENCES, REFUSED } from './differences.ts';

/** A golden request, what the gateway makes of it, and what LiteLLM does. */
interface Compared {
  readonly title: string;
  readonly from: Key;
  readonly to: Key;
  readonly body: Json;
  readonly ours: Json;
  theirs: { readonly body?: Json; readonly error?: string };
}

const compared: Compared[] = casesIn('requests').flatMap(({ from, cases }) =>
  cases.flatMap(({ name, input, expected = {} }) =>
    FORMATS.filter((to) => to !== from).map((to) => ({
      title: `${from} to ${to}: ${name}`,
      from,
      to,
      body: input,
      ours: expected[to] as Json,
      theirs: {},
    })),
  ),
);

beforeAll(async () => {
  const script = new URL('translate.py', import.meta.url).pathname;
  const child = spawn(env['LITELLM_PYTHON'] as string, [script], { stdio: 'pipe' });
  child.stdin.end(JSON.stringify(compared.map(({ from, to, body }) => ({ from, to, body }))));
  const log = text(child.stderr);
  const outcomes = await json(child.stdout).catch(async () => {
    throw new Error((await log).slice(-2000));
  });
  for (const [index, outcome] of (outcomes as Compared['theirs'][]).entries())
    if (compared[index] !== undefined) compared[index].theirs = outcome;
}, 600_000);

/** The neutral form of a body, without what is only notation. Unreadable ones are a difference, too. */
function meaning(key: Key, body: Json): Json {
  const outcome = outcomeOf(() => formatOf(key).readRequest(body, TARGET) as unknown as Json);
  if ('refused' in outcome) return { unreadable: outcome['refused'] };
  const { system, turns, streamUsage: _, ...rest } = outcome as unknown as ChatRequest;
  return { ...rest, system: joinTexts(system), turns: mergeTurns(turns).map(plain) };
}

/** Texts of a turn are one, and arguments are values instead of their JSON text. */
function plain({ role, parts }: Turn): object {
  const texts = parts.filter((part) => part.type === 'text');
  const others = parts.filter((part) => part.type !== 'text');
  return { role, text: joinTexts(texts), parts: others.map(plainPart) };
}

function plainPart(part: Part): object {
  if (part.type === 'toolResult')
    return {
      ...part,
      text: joinTexts(part.parts.filter((each) => each.type === 'text')),
      parts: part.parts.filter((each) => each.type !== 'text'),
    };
  return part.type === 'toolCall' ? { ...part, arguments: parseArguments(part.arguments) } : part;
}

/** The differing values of two JSON values, as lines. */
function differences(ours: unknown, theirs: unknown, path = ''): string[] {
  if (JSON.stringify(ours) === JSON.stringify(theirs)) return [];
  const areObjects = [ours, theirs].every((value) => typeof value === 'object' && value !== null);
  if (!areObjects || Array.isArray(ours) !== Array.isArray(theirs))
    return [`${path}: ${JSON.stringify(ours)} | ${JSON.stringify(theirs)}`];
  const [one, other] = [ours as Json, theirs as Json];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].toSorted();
  return names.flatMap((name) => differences(one[name], other[name], path === '' ? name : `${path}.${name}`));
}

/** The differences of one call; each names the call first. */
function linesOf({ title, to, ours, theirs }: Compared): string[] {
  if ('refused' in ours)
    return theirs.body === undefined ? [] : [`${title} | refused: ${String(ours['refused'])}`];
  if (theirs.body === undefined) return [`${title} | error: ${theirs.error?.split('\n')[0]}`];
  const [one, other] = [meaning(to, ours), meaning(to, theirs.body)];
  const read =
    'unreadable' in other ? [`unreadable: ${String(other['unreadable'])}`] : differences(one, other);
  return read.map((line) => `${title} | ${line}`);
}

test('each difference between the requests of the gateway and of LiteLLM has a reason', () => {
  const lines = compared.flatMap(linesOf);
  const known = [...DIFFERENCES, ...REFUSED];
  const used = new Set<unknown>();
  const unexplained = lines.filter((line) => {
    const reason = known.find(({ lines: pattern }) => pattern.test(line));
    used.add(reason);
    return reason === undefined;
  });
  expect(unexplained).toEqual([]);
  expect(known.filter((reason) => !used.has(reason)).map(({ lines: pattern }) => String(pattern))).toEqual(
    [],
  );
});

test('LiteLLM was called for every golden request', () => {
  expect(compared.length).toBeGreaterThan(60);
  expect(compared.every(({ theirs }) => theirs.body !== undefined || theirs.error !== undefined)).toBe(true);
});
