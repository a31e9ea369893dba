import { elementsOf } from '../../../core/foreign.ts';
import { membersOf } from '../json-members.ts';
import { type TextPart, type TextPath, textPart } from '../texts.ts';
import { forEveryText, MESSAGE_DEPTH, type ReadText } from './every-text.ts';
import type { GuardedText } from './guarded-text.ts';

/** A text of an item, and where it is. */
export interface FoundText extends ReadText {
  /** For webhooks: a key, name or URL is `other`, wherever it is. */
  readonly part: TextPart;
  /** The part of the item that it is in. */
  readonly place: TextPart;
  readonly pieces?: readonly string[];
  /** Texts of the item with the same one follow each other. */
  readonly run?: string;
}

/** What guardrails get of a text, besides its role and scope. */
export function guarded({ text, form, part, pieces }: FoundText): Omit<GuardedText, 'role'> {
  return {
    content: text,
    part,
    ...((form === 'url' || form === 'fixed') && { form }),
    ...(pieces && { pieces }),
  };
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

  /** `contentPath`: where the content is; undefined if the item has none. `depth`: how deep it may be. */
  constructor(item: unknown, contentPath: TextPath | undefined, depth: number = MESSAGE_DEPTH) {
    this.#item = item;
    this.#contentPath = contentPath;
    const texts: FoundText[] = [];
    if (contentPath !== undefined) {
      const pieces = piecesOf(at(item, contentPath));
      const content = { text: pieces.join(' '), path: contentPath, form: 'text' } as const;
      texts.push({ ...content, part: 'content', place: 'content', ...(pieces.length > 1 && { pieces }) });
    }
    forEveryText(
      item,
      (found) => {
        if (contentPath !== undefined && isContent(found.path, contentPath)) return;
        const place = partOf(item, found.path);
        const part = found.form === 'fixed' || found.form === 'url' ? 'other' : place;
        texts.push({ ...found, place, part, ...runOf(found, place) });
      },
      [],
      depth,
    );
    this.texts = texts;
  }

  /** The item with each text replaced; ids, names and images are kept. `masked` corresponds to `texts`. */
  replaced(masked: readonly string[]): unknown {
    if (masked.every((text, index) => text === this.texts[index]?.text)) return this.#item;
    const copy = { root: structuredClone(this.#item) };
    const hasContent = this.#contentPath !== undefined;
    for (const [index, { text, path, form, place, encode }] of this.texts.entries()) {
      const changed = masked[index] ?? '';
      if ((hasContent && index === 0) || changed === text) continue;
      // Its owner cited a text that was changed before.
      if (at(copy.root, path) === undefined) continue;
      if (form === 'derived' || form === 'alternatives') {
        dropDerived(at(copy.root, path.slice(0, -1)));
        continue;
      }
      set(copy, path, encode === undefined ? changed : encode(changed));
      const owner = at(copy.root, path.slice(0, -1));
      dropDerived(owner);
      // It signs the original reasoning.
      if (place === 'reasoning' && typeof owner === 'object' && owner !== null)
        Reflect.deleteProperty(owner, 'signature');
    }
    // Last, because it may remove parts, which would invalidate the paths.
    const path = this.#contentPath;
    if (path !== undefined && masked[0] !== this.texts[0]?.text) {
      set(copy, path, withContent(at(copy.root, path), masked[0] ?? ''));
      dropDerived(at(copy.root, path.slice(0, -1)));
    }
    dropDerived(copy.root);
    return copy.root;
  }
}

/** Blocks with text or reasoning that follow each other in a list are read as one. */
function runOf({ path, form }: ReadText, place: TextPart): Pick<FoundText, 'run'> {
  const isInList = typeof path.at(-1) === 'string' && typeof path.at(-2) === 'number';
  if (form !== 'text' || !isInList || (place !== 'content' && place !== 'reasoning')) return {};
  return { run: path.filter((step) => typeof step === 'string').join('.') };
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

/** The text parts of a content. Other parts are not sent to webhooks. */
function piecesOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return elementsOf(content)
    .map(partText)
    .filter((text) => text !== '');
}

function partText(part: unknown): string {
  const text = membersOf(part)?.['text'];
  return typeof text === 'string' ? text : '';
}

/** Replaces the first text part by the masked text and removes the other text parts. */
function withContent(content: unknown, masked: string): unknown {
  if (!Array.isArray(content)) return masked;
  let isPlaced = false;
  const kept = elementsOf(content).flatMap((part) => {
    if (partText(part) === '') return [part];
    if (isPlaced) return [];
    isPlaced = true;
    const replaced = { ...membersOf(part), text: masked };
    dropDerived(replaced);
    return [replaced];
  });
  return isPlaced ? kept : [...kept, { type: 'text', text: masked }];
}
