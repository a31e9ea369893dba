import { forEachText, type TextPath } from '../texts.ts';

interface Extra {
  readonly path: TextPath;
  readonly text: string;
}

/**
 * The texts of one message, choice or output item: its content first, then all other texts in it, such as tool-call
 * arguments, refusals and reasoning. The constructor throws `NestingError`.
 */
export class ItemTexts {
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
