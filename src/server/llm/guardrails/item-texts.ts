import { membersOf } from '../json-members.ts';
import { forEachNumber, forEachText, type TextPart, type TextPath, textPart } from '../texts.ts';

/** A text of an item, and where it is. */
export interface FoundText {
  readonly text: string;
  readonly path: TextPath;
  readonly part: TextPart;
}

/**
 * The texts of one message, choice, content block or output item: its content first, then all other texts in it, such as
 * tool-call arguments and reasoning. The constructor throws `NestingError`.
 */
export class ItemTexts {
  /** The content (possibly empty) if the item has one, then the other texts. */
  readonly texts: readonly FoundText[];
  readonly #item: unknown;
  readonly #contentPath: TextPath | undefined;

  /** `contentPath`: where the content is; undefined if the item has none. */
  constructor(item: unknown, contentPath: TextPath | undefined) {
    this.#item = item;
    this.#contentPath = contentPath;
    const texts: FoundText[] = [];
    if (contentPath !== undefined)
      texts.push({ text: flatContent(at(item, contentPath)), path: contentPath, part: 'content' });
    const add = (text: string, path: TextPath): void => {
      if (contentPath === undefined || !isContent(path, contentPath))
        texts.push({ text, path, part: partOf(item, path) });
    };
    forEachText(item, add);
    // Arguments of tools in `/v1/messages` and the Gemini API are JSON values instead of text.
    for (const path of inputsIn(item)) forEachNumber(at(item, path), add, path);
    this.texts = texts;
  }

  /** The item with each text replaced; ids, names and images are kept. `masked` corresponds to `texts`. */
  replaced(masked: readonly string[]): unknown {
    if (masked.every((text, index) => text === this.texts[index]?.text)) return this.#item;
    const copy = { root: structuredClone(this.#item) };
    const hasContent = this.#contentPath !== undefined;
    for (const [index, { text, path, part }] of this.texts.entries()) {
      if ((hasContent && index === 0) || masked[index] === text) continue;
      set(copy, path, masked[index] ?? '');
      const owner = at(copy.root, path.slice(0, -1));
      dropDerived(owner);
      // It signs the original reasoning.
      if (part === 'reasoning' && typeof owner === 'object' && owner !== null)
        Reflect.deleteProperty(owner, 'signature');
    }
    // Last, because it may remove parts, which would invalidate the paths.
    const path = this.#contentPath;
    if (path !== undefined && masked[0] !== this.texts[0]?.text)
      set(copy, path, withContent(at(copy.root, path), masked[0] ?? ''));
    dropDerived(copy.root);
    return copy.root;
  }
}

/** Paths of the JSON values that tools get and return in an item and in its content blocks or parts. */
function inputsIn(item: unknown): TextPath[] {
  const { content, parts } = membersOf(item) ?? {};
  return [
    ...valuesIn(item, []),
    ...blocksIn(content, ['content']),
    ...blocksIn(parts, ['parts']),
    ...blocksIn(membersOf(content)?.['parts'], ['content', 'parts']),
  ];
}

function blocksIn(blocks: unknown, path: TextPath): TextPath[] {
  if (!Array.isArray(blocks)) return [];
  return blocks.flatMap((block, index) => valuesIn(block, [...path, index]));
}

/** Where a block has values: `input` of a tool of Anthropic, `args` and `response` of a function of Google. */
const VALUES: readonly TextPath[] = [
  ['input'],
  ['functionCall', 'args'],
  ['function_call', 'args'],
  ['functionResponse', 'response'],
  ['function_response', 'response'],
];

function valuesIn(block: unknown, path: TextPath): TextPath[] {
  return VALUES.filter((inner) => typeof at(block, inner) === 'object').map((inner) => [...path, ...inner]);
}

/** The part of a text, which the type of its item may decide. */
function partOf(item: unknown, path: TextPath): TextPart {
  const type = membersOf(item)?.['type'];
  return typeof type === 'string' && /_call$/.test(type) ? 'toolCalls' : textPart(path);
}

/** The content itself, or the text of one of its parts. */
function isContent(path: TextPath, contentPath: TextPath): boolean {
  if (!contentPath.every((step, index) => step === path[index])) return false;
  const rest = path.slice(contentPath.length);
  return rest.length === 0 || (rest.length === 2 && typeof rest[0] === 'number' && rest[1] === 'text');
}

function at(value: unknown, path: TextPath): unknown {
  return path.reduce((inner: unknown, step) => membersOf(inner)?.[step], value);
}

/** Sets a value. Missing members on the path are created: a message may have had no content. */
function set(copy: { root: unknown }, path: TextPath, text: unknown): void {
  let inner: Record<string | number, unknown> = copy as Record<string, unknown>;
  let last: string | number = 'root';
  for (const step of path) {
    inner[last] ??= {};
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- own copy; a member that is missing was created above
    inner = inner[last] as Record<string | number, unknown>;
    last = step;
  }
  inner[last] = text;
}

/** Removes token probabilities (also those of Google), which repeat the text, and citations, which point into it. */
function dropDerived(owner: unknown): void {
  if (typeof owner !== 'object' || owner === null) return;
  if ('logprobs' in owner) owner.logprobs = Array.isArray(owner.logprobs) ? [] : null;
  if ('logprobsResult' in owner) Reflect.deleteProperty(owner, 'logprobsResult');
  if ('annotations' in owner && Array.isArray(owner.annotations)) owner.annotations = [];
}

/** The text parts, joined by a space. Other parts are not sent to webhooks. */
function flatContent(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as unknown[])
    .map(partText)
    .filter((text) => text !== '')
    .join(' ');
}

function partText(part: unknown): string {
  const text = membersOf(part)?.['text'];
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
    const replaced = { ...membersOf(part), text: masked };
    dropDerived(replaced);
    return [replaced];
  });
  return isPlaced ? kept : [...kept, { type: 'text', text: masked }];
}
