import { elementsOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { llmError } from '../errors.ts';
import type { PromptField } from '../formats/format.ts';
import { formats } from '../formats/index.ts';
import { promptFields } from '../formats/text-fields.ts';
import { membersOf } from '../json-members.ts';
import type { CallBody } from '../request/call-body.ts';
import { NestingError, type TextPart, type TextPath } from '../texts.ts';
import type { Guard } from './guard.ts';
import { type ContentScope, failed, type GuardedText, jsonOf, scopeOfRole } from './guarded-text.ts';
import { type FoundText, guarded, ItemTexts } from './item-texts.ts';

/** The texts of a request as a flat list, and a function to replace them. */
export interface RequestTexts {
  readonly texts: readonly GuardedText[];
  /**
   * Replaces the texts. Ids, tool names and images are kept if the number of texts is unchanged. Throws an `AppError`
   * (503).
   */
  replace(masked: readonly GuardedText[]): void;
}

/** Where the texts are read and replaced. */
export type TextFields = Pick<CallBody, 'isReadable' | 'fields' | 'get' | 'set'>;

/**
 * The texts of a request: those of `promptFields`, whatever the path, because a provider may read any of them, then every other
 * string that one of `guards` sees. Throws an `AppError` (400) for a format that guardrails cannot read.
 */
export function requestTexts(body: TextFields, guards: readonly Pick<Guard, 'sees'>[]): RequestTexts {
  if (!body.isReadable) throw unreadable();
  const parts = promptFields.flatMap((field) => fieldTexts(body, field) ?? []);
  const rest = otherFields(
    body,
    guards.some((guard) => guard.sees(DEFINITION)),
  );
  const texts = parts.flatMap((part) => part.texts);
  return {
    texts: [...texts, ...rest.texts],
    replace(masked) {
      const others = masked.filter(({ isOutside }) => isOutside === true);
      rest.replace(others);
      const own = others.length === 0 ? masked : masked.filter(({ isOutside }) => isOutside !== true);
      const [only] = parts;
      if (parts.length === 1 && only !== undefined) {
        only.replace(own);
        return;
      }
      if (own.length !== texts.length) throw misplaced();
      let from = 0;
      for (const part of parts) {
        part.replace(own.slice(from, from + part.texts.length));
        from += part.texts.length;
      }
    },
  };
}

const OF_CONVERSATION: ReadonlySet<string> = new Set(promptFields.map(({ name }) => name));

/** Members that define tools and the format of the answer, of every format. */
const DEFINITIONS: ReadonlySet<string | number> = new Set(
  formats.flatMap(({ definitions = [] }) => definitions),
);

const FORMAT_PATHS = formats.flatMap(({ formatPath }) => (formatPath === undefined ? [] : [formatPath]));

const isDefinition = (path: TextPath): boolean =>
  path.some((step) => DEFINITIONS.has(step)) ||
  FORMAT_PATHS.some(([field, member]) => field === path[0] && member === path[1]);

/** Whoever sees it sees definitions. */
const DEFINITION: GuardedText = { role: 'user', content: 'x', part: 'other', scope: 'toolDefinitions' };

/** The texts of all other fields; of definitions only if some guardrail sees them, because they are most of a request. */
function otherFields(body: TextFields, readsDefinitions: boolean): RequestTexts {
  const fields = body
    .fields()
    .filter((field) => !OF_CONVERSATION.has(field) && (readsDefinitions || !DEFINITIONS.has(field)));
  const values = Object.fromEntries(fields.map((field) => [field, body.get(field)]));
  // Schemas of tools are deeper than messages. A body is not deeper than this.
  const found = new ItemTexts(values, undefined, LIMITS.jsonDepth);
  return {
    texts: found.texts.map((text): GuardedText => {
      const scope = isDefinition(text.path) ? 'toolDefinitions' : undefined;
      return { ...guarded(text), role: 'user', part: 'other', scope, isOutside: true };
    }),
    replace(masked) {
      const contents = masked.map(({ content }) => content);
      const replaced = membersOf(found.replaced(contents)) ?? {};
      const changed = new Set(
        found.texts.flatMap(({ text, path }, index) => (contents[index] === text ? [] : path.slice(0, 1))),
      );
      for (const field of changed) body.set(String(field), replaced[field]);
    },
  };
}

function fieldTexts(body: TextFields, field: PromptField): RequestTexts | undefined {
  const value = body.get(field.name);
  if (typeof value === 'string') return single(body, field, value);
  if (Array.isArray(value)) return list(body, field, elementsOf(value));
  if (field.isContent === true && membersOf(value) !== undefined) return oneContent(body, field, value);
  // No API defines a number or an object here, but a provider might interpret it.
  if (value !== undefined && value !== null) throw unsupported(field.name);
  return undefined;
}

function single(body: TextFields, field: PromptField, content: string): RequestTexts {
  return {
    texts: [{ role: defaultRole(field), content, part: 'content', scope: scopeOfRole(defaultRole(field)) }],
    replace: (masked) => body.set(field.name, masked.map((text) => text.content).join('\n')),
  };
}

/** The instruction of `generateContent`, the content of `embedContent`, or the predicted output of a chat completion. */
function oneContent(body: TextFields, field: PromptField, value: unknown): RequestTexts {
  const found = itemTexts(field, value);
  const role = defaultRole(field);
  const scope = scopeOfRole(role);
  return {
    texts: found.texts.map((text): GuardedText => ({ ...guarded(text), role, scope })),
    replace(masked) {
      if (masked.length !== found.texts.length) throw misplaced();
      body.set(field.name, found.replaced(masked.map(({ content }) => content)));
    },
  };
}

function list(body: TextFields, field: PromptField, items: readonly unknown[]): RequestTexts {
  const found = items.map((item) => itemTexts(field, item));
  let turn = 0;
  const texts = found.flatMap((item, index) => {
    const role = roleOf(items[index], field);
    // Providers join neighbouring messages of one role.
    if (index > 0 && role !== roleOf(items[index - 1], field)) turn += 1;
    return item.texts.map((text): GuardedText => {
      const { path, place, part } = text;
      const run = runOf(text, field, turn, index);
      const scope = scopeOf(items[index], path, place, role);
      return { ...guarded(text), role, scope, ...jsonOf(part, path), ...(run !== undefined && { run }) };
    });
  });
  return {
    texts,
    replace(masked) {
      if (masked.length === texts.length) {
        let from = 0;
        const replaced = found.map((item) => {
          const own = masked.slice(from, from + item.texts.length);
          from += item.texts.length;
          return item.replaced(own.map(({ content }) => content));
        });
        body.set(field.name, replaced);
        return;
      }
      // A webhook may add or remove messages only if every message is exactly one text.
      if (texts.length !== items.length) throw misplaced();
      body.set(
        field.name,
        masked.map(({ role, content }) => ({ role, content })),
      );
    },
  };
}

function itemTexts(field: PromptField, item: unknown): ItemTexts {
  // Token numbers encode text that guardrails cannot read.
  if (typeof item !== 'string' && (typeof item !== 'object' || item === null || Array.isArray(item)))
    throw unsupported(field.name);
  try {
    return new ItemTexts(item, typeof item === 'string' ? [] : (field.contentPath?.(item) ?? CONTENT));
  } catch (error) {
    if (error instanceof NestingError) throw unsupported(field.name);
    throw error;
  }
}

const CONTENT: TextPath = ['content'];

/** Which texts of a conversation are read as one: contents of the same turn, and blocks of the same kind inside of an item. */
function runOf(
  { place, path, run }: FoundText,
  { name, isConversation }: PromptField,
  turn: number,
  index: number,
): string | undefined {
  if (run !== undefined) return `${name} ${index} ${run}`;
  return place === 'content' && path.length > 0 && isConversation === true ? `${name} ${turn}` : undefined;
}

function roleOf(item: unknown, field: PromptField): string {
  const role = membersOf(item)?.['role'];
  return typeof role === 'string' ? role : defaultRole(field);
}

const defaultRole = ({ isSystem }: PromptField): string => (isSystem === true ? 'system' : 'user');

const RESPONSE_OF_FUNCTION = /^function_?response$/i;

/** What a text of a message is for `scope`: arguments and results of tools are parts of messages or items of their own. */
function scopeOf(item: unknown, path: TextPath, part: TextPart, role: string): ContentScope {
  if (
    path.some((step) => step === 'output' || RESPONSE_OF_FUNCTION.test(String(step))) ||
    isToolResult(item, path)
  )
    return 'toolOutput';
  return part === 'toolCalls' ? 'toolInput' : scopeOfRole(role);
}

/** Whether a text is inside the result of a tool: a content block or an item whose type says so. */
function isToolResult(item: unknown, path: TextPath): boolean {
  let inner = item;
  for (const step of [...path, undefined]) {
    const type = membersOf(inner)?.['type'];
    if (typeof type === 'string' && /tool_result$|_output$/.test(type)) return true;
    if (step === undefined) return false;
    inner = membersOf(inner)?.[step];
  }
  return false;
}

function unsupported(field: string): Error {
  return llmError(
    'llm_invalid',
    'guardrail_unsupported',
    `\`${field}\` has a format that guardrails cannot read: send text, or a list of texts or messages`,
  );
}

const unreadable = (): Error =>
  llmError(
    'llm_invalid',
    'guardrail_unsupported',
    'the body has a format that guardrails cannot read: send JSON or a form',
  );

const misplaced = (): Error => failed('request', 'the mask has a different number of texts than the request');
