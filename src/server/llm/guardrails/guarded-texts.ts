import type { CallBody } from '../call-body.ts';
import { llmError } from '../errors.ts';
import { forEachText, NestingError, type TextPath } from '../texts.ts';
import { failed, type GuardedText } from './guardrails.ts';

/** The texts of a request as a flat list, and a function to replace them. */
export interface RequestTexts {
  readonly texts: readonly GuardedText[];
  /**
   * Replaces the texts. Ids, tool names and images are kept if the number of texts is unchanged. Throws an `AppError`
   * (503).
   */
  replace(masked: readonly GuardedText[]): void;
}

/** Fields that carry prompts: chat, text completions, responses, embeddings, messages, reranking. */
export const TEXT_FIELDS = [
  'messages',
  'prompt',
  'instructions',
  'input',
  'suffix',
  'system',
  'query',
  'documents',
] as const;

/**
 * The texts of every field in `TEXT_FIELDS`, whatever the path: a provider may read any of them. Throws an `AppError`
 * (400) for a format that guardrails cannot read.
 */
export function requestTexts(body: CallBody): RequestTexts {
  if (!body.isReadable) throw unreadable();
  const parts = TEXT_FIELDS.flatMap((field) => partOf(body, field) ?? []);
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const texts = parts.flatMap((part) => part.texts);
  return {
    texts,
    replace(masked) {
      if (masked.length !== texts.length) throw misplaced();
      let from = 0;
      for (const part of parts) {
        part.replace(masked.slice(from, from + part.texts.length));
        from += part.texts.length;
      }
    },
  };
}

function partOf(body: CallBody, field: (typeof TEXT_FIELDS)[number]): RequestTexts | undefined {
  const value = body.get(field);
  if (typeof value === 'string') return single(body, field, value);
  if (Array.isArray(value)) return list(body, field, value as unknown[]);
  // No API defines a number or an object here, but a provider might interpret it.
  if (value !== undefined && value !== null) throw unsupported(field);
  return undefined;
}

function single(body: CallBody, field: string, content: string): RequestTexts {
  return {
    texts: [{ role: defaultRole(field), content }],
    replace: (masked) => body.set(field, masked.map((text) => text.content).join('\n')),
  };
}

function list(body: CallBody, field: string, items: readonly unknown[]): RequestTexts {
  const found = items.map((item) => itemTexts(field, item));
  const texts = found.flatMap(({ texts: contents }, index) => {
    const role = roleOf(items[index], field);
    return contents.map((content): GuardedText => ({ role, content }));
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
        body.set(field, replaced);
        return;
      }
      // A webhook may add or remove messages only if every message is exactly one text.
      if (texts.length !== items.length) throw misplaced();
      body.set(field, masked);
    },
  };
}

function itemTexts(field: string, item: unknown): ItemTexts {
  // Token numbers encode text that guardrails cannot read.
  if (typeof item !== 'string' && (typeof item !== 'object' || item === null || Array.isArray(item)))
    throw unsupported(field);
  try {
    return new ItemTexts(item, typeof item === 'string' ? [] : ['content']);
  } catch (error) {
    if (error instanceof NestingError) throw unsupported(field);
    throw error;
  }
}

function roleOf(item: unknown, field: string): string {
  const { role } = item as { role?: unknown };
  return typeof role === 'string' ? role : defaultRole(field);
}

const defaultRole = (field: string): string => (field === 'system' ? 'system' : 'user');

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

interface Extra {
  readonly path: TextPath;
  readonly text: string;
}

/**
 * The texts of one message, choice or output item: its content first, then all other texts in it, such as tool-call
 * arguments, refusals and reasoning. The constructor throws `NestingError`.
 */
class ItemTexts {
  /** The content (possibly empty), then the other texts. */
  readonly texts: readonly string[];
  readonly #item: unknown;
  readonly #contentPath: TextPath;
  readonly #extras: readonly Extra[];

  constructor(item: unknown, contentPath: TextPath) {
    this.#item = item;
    this.#contentPath = contentPath;
    const extras: Extra[] = [];
    forEachText(item, (text, path) => {
      if (!isContent(path, contentPath)) extras.push({ path, text });
    });
    this.#extras = extras;
    this.texts = [flatContent(at(item, contentPath)), ...extras.map(({ text }) => text)];
  }

  /** The item with each text replaced; ids, names and images are kept. `masked` corresponds to `texts`. */
  replaced(masked: readonly string[]): unknown {
    if (masked.every((text, index) => text === this.texts[index])) return this.#item;
    const copy = { root: structuredClone(this.#item) };
    const [content = '', ...others] = masked;
    for (const [index, { path }] of this.#extras.entries()) set(copy, path, others[index] ?? '');
    // Last, because it may remove parts, which would invalidate the paths.
    const path = this.#contentPath;
    if (content !== this.texts[0]) set(copy, path, withContent(at(copy.root, path), content));
    dropLogprobs(copy.root);
    return copy.root;
  }
}

/** The content itself, or the text of one of its parts. */
function isContent(path: TextPath, contentPath: TextPath): boolean {
  if (!contentPath.every((step, index) => step === path[index])) return false;
  const rest = path.slice(contentPath.length);
  return rest.length === 0 || (rest.length === 2 && typeof rest[0] === 'number' && rest[1] === 'text');
}

function at(value: unknown, path: TextPath): unknown {
  return path.reduce(
    (inner: unknown, step) => (inner as Record<string, unknown> | null | undefined)?.[step],
    value,
  );
}

/** Sets a value. Missing members on the path are created: a message may have had no content. */
function set(copy: { root: unknown }, path: TextPath, text: unknown): void {
  let inner: Record<string | number, unknown> = copy as Record<string, unknown>;
  let last: string | number = 'root';
  for (const step of path) {
    inner[last] ??= {};
    inner = inner[last] as Record<string | number, unknown>;
    last = step;
  }
  inner[last] = text;
}

/** Removes token probabilities, which repeat the text. */
export function dropLogprobs(item: unknown): void {
  if (typeof item === 'object' && item !== null && 'logprobs' in item) item.logprobs = null;
}

/** The text parts, joined by a space. Other parts are not sent to webhooks. */
export function flatContent(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as unknown[])
    .map(partText)
    .filter((text) => text !== '')
    .join(' ');
}

function partText(part: unknown): string {
  const { text } = (part ?? {}) as { text?: unknown };
  return typeof text === 'string' ? text : '';
}

/** Replaces the first text part by the masked text and removes the other text parts. */
function withContent(content: unknown, masked: string): unknown {
  if (!Array.isArray(content)) return masked;
  let isPlaced = false;
  const kept = (content as unknown[]).flatMap((part) => {
    if (partText(part) === '') return [part];
    if (isPlaced) return [];
    isPlaced = true;
    return [{ ...(part as object), text: masked }];
  });
  return isPlaced ? kept : [...kept, { type: 'text', text: masked }];
}

/** The texts of a non-streaming response, per choice content first, and a function that returns it with other texts. */
export interface ResponseTexts {
  readonly contents: readonly string[];
  replaced(masked: readonly string[]): unknown;
}

type Json = Record<string, unknown>;

/**
 * The texts of a chat or text completion (`choices`) or of a response (`output`). Embeddings have none. Throws an
 * `AppError` (503) if the response is nested too deeply to check.
 */
export function responseTexts(response: unknown): ResponseTexts {
  const value = (typeof response === 'object' && response !== null ? response : {}) as Json;
  for (const member of ['choices', 'output'] as const) {
    const items = value[member];
    if (Array.isArray(items)) return itemsOf(value, member, items as unknown[]);
  }
  return { contents: [], replaced: () => response };
}

function itemsOf(value: Json, member: 'choices' | 'output', items: readonly unknown[]): ResponseTexts {
  const found = items.map((item) => textsOf(item, member));
  return {
    contents: found.flatMap(({ texts }) => texts),
    replaced(masked) {
      let from = 0;
      const replaced = found.map((item) => {
        const own = masked.slice(from, from + item.texts.length);
        from += item.texts.length;
        return item.replaced(own);
      });
      // Some providers repeat the text of all items here.
      const { output_text: _text, ...rest } = value;
      return { ...rest, [member]: replaced };
    },
  };
}

function textsOf(item: unknown, member: 'choices' | 'output'): ItemTexts {
  try {
    if (member === 'output') return new ItemTexts(item, ['content']);
    const isText = typeof (item as { text?: unknown } | null)?.text === 'string';
    return new ItemTexts(item, isText ? ['text'] : ['message', 'content']);
  } catch (error) {
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}
