import { elementsOf, isRecord } from '../../../core/foreign.ts';
import {
  type EncodedText,
  isBase64,
  textsInBase64,
  textsInDataUrl,
  WORD_LENGTH,
} from '../../guardrails/encoded-text.ts';
import { isToolValue, NestingError, type TextPath } from '../texts.ts';

// Every string of a body or of an event is a text that guardrails read, whatever member it is in, so that a member that an API
// adds is read, too. What is not read is in `NOT_READ`, and docs/guardrails.md lists it.

/**
 * How a text can be replaced. `text` and `number`: by any string. `url`: by a URL. `fixed`: not at all, because it is a key, or
 * a name that means something else otherwise. `derived`: its value is removed, because it repeats another text. `alternatives`:
 * likewise, for texts that the model has not chosen.
 */
export type TextForm = 'text' | 'number' | 'url' | 'fixed' | 'derived' | 'alternatives';

/** A string that guardrails read. */
export interface ReadText {
  readonly text: string;
  readonly path: TextPath;
  readonly form: TextForm;
  /** The value for a text that is encoded in its member, as in a document. */
  readonly encode?: ((text: string) => string) | undefined;
}

type Visit = (found: ReadText) => void;

/** What guardrails do not read, by the name of its member and its form, and why. docs/guardrails.md has the same rows. */
export const NOT_READ = {
  id: {
    what: 'Ids, and names of models, without spaces: `id`, `ids`, `model`, `modelVersion`, `system_fingerprint`, `obfuscation`, and names that end with `_id`, `_ids`, `Id`',
    why: 'random digits look like numbers of cards or telephones, and another id breaks the conversation',
    members: /^(?:ids?|model|modelVersion|model_version|system_fingerprint|obfuscation)$|_ids?$|[a-z]Ids?$/,
    values: /^[\w.:/+=|~-]{1,512}$/,
  },
  type: {
    what: 'Types, roles and states of one word: `type`, `role`, `object`, `status`, media types, and names that end with `reason`',
    why: 'they are words of the API, which patterns such as `user` match in every call',
    members: /^(?:type|role|object|status|media_type|mime_type|mimeType)$|(?:^|_)reason$|Reason$/,
    values: /^[A-Za-z][\w.+/;=-]{0,127}$/,
  },
  time: {
    what: 'Times as in RFC 3339',
    why: 'they are digits only, as ids',
    members: /^/,
    values: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i,
  },
  bytes: {
    what: 'Base64 of anything but text, in members for images, recordings, files, vectors and signatures',
    why: 'patterns find nothing in it; texts in base64, such as documents of the type `text/plain`, are read',
    members:
      /^(?:data|b64_json|partial_image_b64|file_data|bytes|audio|image|embedding|signature|thoughtSignature|thought_signature|encrypted_content|encrypted_index|imageBytes|videoBytes|bytesBase64Encoded)$/,
    /** And `isBase64`. */
    values: /^/,
  },
  key: {
    what: 'Names of members without spaces, of up to 64 characters',
    why: 'they are words of the API; in arguments and results of tools and in `metadata`, keys are read',
    members: /^/,
    values: /^[\w.$@:/-]{1,64}$/,
  },
  number: {
    what: 'Numbers',
    why: 'they are counts, times and vectors; in arguments and results of tools and in `metadata`, they are read',
    members: /^/,
    values: /^/,
  },
} as const;

const { id: ID, type: TYPE, time: TIME, bytes: BYTES, key: KEY } = NOT_READ;

/** Names of tools, functions, participants and parameters, which have to stay as they are. */
const NAME_MEMBER = /^(?:name|jsonPath)$/;
const NAME = /^[$\w.:/[\]-]{1,128}$/;
const URL_MEMBER = /(?:^|_)ur[il]s?$|[a-z]Ur[il]s?$/;

/** Values of clients and tools, in which no name has a meaning. */
const DATA_MEMBERS: ReadonlySet<string> = new Set(['metadata', 'labels', 'variables']);

/** Messages of APIs are not deeper. Deeper values are not searched, so guardrails must reject them. */
export const MESSAGE_DEPTH = 32;

/**
 * Calls `visit` with every text in a value, at any depth up to `depth`, in order. `path` is where the value is. Throws
 * `NestingError`.
 */
export function forEveryText(
  value: unknown,
  visit: Visit,
  path: TextPath = [],
  depth: number = MESSAGE_DEPTH,
): void {
  new Reader(visit, path, depth).read(value);
}

class Reader {
  readonly #visit: Visit;
  readonly #path: (string | number)[];
  readonly #depth: number;

  constructor(visit: Visit, path: TextPath, depth: number) {
    this.#visit = visit;
    this.#path = [...path];
    this.#depth = depth;
  }

  /** Reads a value in which names of members mean what an API says. */
  read(value: unknown): void {
    if (typeof value === 'string') this.#text(value, 'text');
    else if (Array.isArray(value)) {
      this.#enter();
      for (const [index, item] of elementsOf(value).entries()) {
        this.#path.push(index);
        // Strings in a list are of the kind of the list: ids, or URLs of images.
        if (typeof item === 'string') this.#listed(item);
        else if (typeof item === 'object') this.read(item);
        this.#path.pop();
      }
    } else if (isRecord(value)) {
      this.#enter();
      for (const key in value) {
        const kind = kindOf(key);
        if (!kind.isPlain) this.#text(key, 'fixed');
        this.#path.push(key);
        this.#member(value, key, kind, value[key]);
        this.#path.pop();
      }
    }
  }

  #member(owner: Owner, key: string, kind: MemberKind, value: unknown): void {
    if (typeof value === 'string') {
      if (isToolValue(owner, key, this.#path.at(-2))) this.#text(value, 'text');
      else this.#string(value, key, kind, owner);
    }
    // An argument of a function in a stream of Vertex AI.
    else if (typeof value === 'number' && key === 'numberValue') this.#text(String(value), 'number');
    else if (typeof value !== 'object' || value === null) return;
    else if (DATA_MEMBERS.has(key) || isToolValue(owner, key, this.#path.at(-2))) this.#data(value);
    else if (key === 'logprobs' || key === 'logprobsResult') this.#probabilities(value);
    else this.read(value);
  }

  #string(value: string, key: string, kind: MemberKind, owner: Owner): void {
    if (value === '') return;
    if (kind.isId && ID.values.test(value)) return;
    if (kind.isType && TYPE.values.test(value)) return;
    if (isTime(value)) return;
    const isImage = key === 'result' && owner['type'] === 'image_generation_call';
    if (kind.isBytes || kind.isUrl || isImage) this.#encoded(value, key, kind.isBytes || isImage, owner);
    else this.#text(value, kind.isName && NAME.test(value) ? 'fixed' : 'text');
  }

  /** A member that carries bytes, or says where they are. */
  #encoded(value: string, key: string, mayBeBytes: boolean, owner: Owner): void {
    const texts = textsInDataUrl(value) ?? (mayBeBytes ? textsInBytes(value, key, owner) : undefined);
    if (texts === undefined) this.#text(value, kindOf(key).isUrl ? 'url' : 'text');
    else for (const { text, isFixed, encode } of texts) this.#text(text, isFixed ? 'fixed' : 'text', encode);
  }

  /** Reads a value in which no name has a meaning: every string and number, and the keys as one text. */
  #data(value: unknown): void {
    const keys = new Set<string>();
    this.#dataValue(value, keys);
    if (keys.size > 0) this.#text([...keys].join('\n'), 'fixed');
  }

  #dataValue(value: unknown, keys: Set<string>): void {
    if (typeof value === 'string') this.#text(value, 'text');
    else if (typeof value === 'number') this.#text(String(value), 'number');
    if (typeof value !== 'object' || value === null) return;
    this.#enter();
    const isList = Array.isArray(value);
    for (const [key, member] of Object.entries(value)) {
      if (!isList) keys.add(key);
      this.#path.push(isList ? Number(key) : key);
      this.#dataValue(member, keys);
      this.#path.pop();
    }
  }

  /** Token probabilities repeat a text in pieces, with alternatives for each. */
  #probabilities(value: object): void {
    const chosen: string[] = [];
    const others: string[] = [];
    const collect = (inner: unknown, isTop: boolean): void => {
      if (typeof inner === 'string') (isTop ? others : chosen).push(inner);
      if (typeof inner !== 'object' || inner === null) return;
      this.#enter();
      for (const [key, member] of Object.entries(inner)) {
        this.#path.push(key);
        const isToken = isTop && typeof member === 'number' && !Array.isArray(inner);
        if (isToken || !KEY.values.test(key)) others.push(key);
        collect(member, isTop || key.startsWith('top'));
        this.#path.pop();
      }
    };
    collect(value, false);
    this.#text(chosen.join(''), 'derived');
    this.#text([...new Set(others)].join('\n'), 'alternatives');
  }

  #listed(item: string): void {
    const list = String(this.#path.findLast((step) => typeof step === 'string') ?? '');
    this.#string(item, list, kindOf(list), {});
  }

  #enter(): void {
    if (this.#path.length > this.#depth) throw new NestingError('nested too deeply');
  }

  #text(text: string, form: TextForm, encode?: ReadText['encode']): void {
    if (text !== '') this.#visit({ text, path: [...this.#path], form, ...(encode && { encode }) });
  }
}

type Owner = Readonly<Record<string, unknown>>;

/** What the name of a member says about its value. */
interface MemberKind {
  readonly isPlain: boolean;
  readonly isId: boolean;
  readonly isType: boolean;
  readonly isBytes: boolean;
  readonly isUrl: boolean;
  readonly isName: boolean;
}

/** Names of members are few and repeat: those of all APIs are some hundred. */
const kinds = new Map<string, MemberKind>();
const MAX_KINDS = 2_048;

function kindOf(key: string): MemberKind {
  const known = kinds.get(key);
  if (known !== undefined) return known;
  const kind: MemberKind = {
    isPlain: KEY.values.test(key),
    isId: ID.members.test(key),
    isType: TYPE.members.test(key),
    isBytes: BYTES.members.test(key),
    isUrl: URL_MEMBER.test(key),
    isName: NAME_MEMBER.test(key),
  };
  if (kinds.size < MAX_KINDS && key.length <= WORD_LENGTH) kinds.set(key, kind);
  return kind;
}

const HYPHEN = 45;

/** Whether a string is a time. Nearly none is, which its length and its fifth character show. */
const isTime = (value: string): boolean =>
  value.length >= 20 && value.length <= 35 && value.charCodeAt(4) === HYPHEN && TIME.values.test(value);

/** The texts of a member with bytes; undefined if it is not base64. */
function textsInBytes(value: string, key: string, owner: Owner): EncodedText[] | undefined {
  // A document of Anthropic has its text as it is.
  if (owner['type'] === 'text' || !isBase64(value)) return undefined;
  if (!NO_DOCUMENT.test(key)) return textsInBase64(value, typeOf(owner));
  return value.length < WORD_LENGTH ? [{ text: value, isFixed: false }] : [];
}

/** Members whose bytes are never those of a document. */
const NO_DOCUMENT = /^(?:audio|embedding|encrypted_.*)$|signature$/i;

const typeOf = (owner: Owner): string => {
  const type = owner['media_type'] ?? owner['mimeType'] ?? owner['mime_type'];
  return typeof type === 'string' ? type : '';
};
