import { createHash } from 'node:crypto';
import { membersOf, parseJson } from '../../../core/foreign.ts';
import { withVisible } from './hidden-characters.ts';

/** Members of a tool that decide what a model and a user believe it does. Others, such as icons, may change freely. */
const PINNED = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

/** The pinned members that a tool has. */
export type ToolDefinition = Readonly<Partial<Record<(typeof PINNED)[number], unknown>>>;

/** Returns the pinned members of a tool, given as JSON text. */
export function definitionOf(tool: string): ToolDefinition {
  return definitionIn(parseJson(tool));
}

/** The pinned members of a value. */
export function definitionIn(tool: unknown): ToolDefinition {
  const value = membersOf(tool);
  return Object.fromEntries(PINNED.flatMap((key) => (value[key] === undefined ? [] : [[key, value[key]]])));
}

/** SHA-256 of a definition. The order of keys does not count: some servers build schemas in random order. */
export function hashOf(definition: ToolDefinition): string {
  return `sha256:${createHash('sha256').update(canonical(definition)).digest('hex')}`;
}

/** JSON text with sorted keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}

/** Characters of each version that a summary shows, and of the equal text before them. */
const SHOWN = 60;
const BEFORE = 20;

/**
 * Summarizes the changed members, as in `description: "…old" -> "…new"`: where they begin to differ. `known` is undefined
 * if it was too long to be kept.
 */
export function changesBetween(known: ToolDefinition | undefined, current: ToolDefinition): string {
  if (known === undefined) return 'the pinned definition was too long to be kept';
  const changes = PINNED.flatMap((key) => {
    const [before, after] = [textOf(known[key]), textOf(current[key])];
    return before === after ? [] : [difference(key, before, after)];
  });
  // Someone edited the hash, or the definition beside it.
  return changes.length === 0 ? 'only the hash differs' : changes.join('; ');
}

/** The members that differ, each as text of several lines: strings by sentence, others as indented JSON with sorted keys. */
export function changedMembers(
  known: ToolDefinition,
  current: ToolDefinition,
): readonly { readonly member: string; readonly before: string; readonly after: string }[] {
  return PINNED.map((member) => ({
    member,
    before: linesOf(known[member]),
    after: linesOf(current[member]),
  })).filter(({ before, after }) => before !== after);
}

function linesOf(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value.replace(/([.!?]) +/g, '$1\n');
  return JSON.stringify(parseJson(canonical(value)), undefined, 2);
}

function difference(key: string, before: string | undefined, after: string | undefined): string {
  if (after === undefined) return `${key}: removed`;
  if (before === undefined) return `${key}: added ${excerpt(after, 0)}`;
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  return `${key}: ${excerpt(before, at)} -> ${excerpt(after, at)}`;
}

function excerpt(text: string, at: number): string {
  const from = Math.max(0, at - BEFORE);
  const to = at + SHOWN;
  const shown = `${from > 0 ? '…' : ''}${text.slice(from, to)}${to < text.length ? '…' : ''}`;
  return withVisible(JSON.stringify(shown), (code) => `\\u{${code.toString(16)}}`);
}

/** Strings as they are, everything else as JSON with sorted keys. */
function textOf(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : canonical(value);
}
