import { membersOf } from '../../../core/foreign.ts';
import type { ChatRequest } from '../chat/chat.ts';
import {
  type CallTarget,
  type ChatFormat,
  type Json,
  type ProviderChatFormat,
  Untranslatable,
} from '../chat/chat-format.ts';
import type { EmbeddingFormat, ProviderEmbeddingFormat } from '../chat/embedding-format.ts';
import { parseExactly } from '../chat/exact-json.ts';
import { nameMember } from '../chat/refusals.ts';
import { withPlainNames } from '../chat/tool-names.ts';
import { llmError, UNTRANSLATABLE } from '../errors.ts';
import { type FormatKey, formatOf, type ProviderFormatKey, providerFormatOf } from '../formats/index.ts';
import type { ProviderFormat } from '../providers/provider.ts';
import type { CallBody } from '../request/call-body.ts';
import type { EmbeddingTranslation } from './translated-embeddings.ts';

/** The wire format that a call is sent in. */
export interface ChosenFormat {
  readonly provider: ProviderFormat;
  /** Formats to translate between, if that of the client is another one. */
  readonly translation?: FormatPair;
}

type FormatPair =
  | { readonly kind: 'chat'; readonly from: ChatFormat; readonly to: ProviderChatFormat }
  | { readonly kind: 'embeddings'; readonly from: EmbeddingFormat; readonly to: ProviderEmbeddingFormat };

export type Translation = ChatTranslation | EmbeddingTranslation;

/** A chat whose client and provider have different formats. */
export interface ChatTranslation {
  readonly kind: 'chat';
  readonly client: ChatFormat;
  readonly provider: ProviderChatFormat;
  /** The client's request, as changed by the configuration and guardrails. */
  readonly request: ChatRequest;
}

/**
 * The format for the provider: that of the client if the provider has it, else the first that a translation exists for,
 * of those that the model prefers, and then of the others.
 * Throws an `AppError` (400) if there is none.
 */
export function chooseFormat(
  client: FormatKey,
  all: readonly ProviderFormat[],
  model: { readonly name: string; readonly nameAtProvider: string },
): ChosenFormat {
  const formats = all.filter(({ supports }) => supports?.(model.nameAtProvider) ?? true);
  const same = formats.find(({ type }) => type === client);
  if (same !== undefined) return { provider: same };
  const isPreferred = ({ isPreferredFor }: ProviderFormat): boolean =>
    isPreferredFor?.(model.nameAtProvider) ?? false;
  for (const provider of [...formats.filter(isPreferred), ...formats]) {
    const translation = pairOf(client, provider.type);
    if (translation !== undefined) return { provider, translation };
  }
  const known = formats.map(({ type }) => type).join(', ');
  throw llmError(
    'llm_invalid',
    'unsupported_endpoint',
    `the provider of model \`${model.name}\` does not support calls of the type ${client}: it supports ${known}`,
  );
}

function pairOf(client: FormatKey, provider: ProviderFormatKey): FormatPair | undefined {
  const { chat: from, embedsFrom } = formatOf(client);
  const { chat: to, embedsTo } = providerFormatOf(provider) ?? {};
  if (from !== undefined && to !== undefined) return { kind: 'chat', from, to };
  if (embedsFrom === undefined || embedsTo === undefined) return undefined;
  return { kind: 'embeddings', from: embedsFrom, to: embedsTo };
}

/** Translates a request. Throws an `AppError` (400) that names the member that cannot be translated. */
export function translateCall(
  pair: FormatPair,
  body: CallBody,
  target: CallTarget,
): { readonly translation: Translation; readonly body: CallBody } {
  const { from, to } = pair;
  const sent = membersOf(parseExactly(body.toString()));
  try {
    if (pair.kind === 'embeddings') {
      const request = pair.from.readRequest(sent, target);
      const translation = { kind: pair.kind, client: pair.from, provider: pair.to, request };
      // The name at the provider: that of the body may be the client's.
      return {
        translation,
        body: new WrittenBody(pair.to.writeRequest({ ...request, model: target.model })),
      };
    }
    const translated = translateRequest(pair.from, pair.to, sent, target);
    const translation = {
      kind: pair.kind,
      client: pair.from,
      provider: pair.to,
      request: translated.request,
    };
    return { translation, body: new WrittenBody(translated.body) };
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    const why = error.why === undefined ? '' : `: ${error.why}`;
    // Names of members are the client's, and may have any length.
    const what = error.what.length > MOST_SHOWN ? `${error.what.slice(0, MOST_SHOWN)}…` : error.what;
    throw llmError(
      'llm_invalid',
      UNTRANSLATABLE,
      `failed to process LLM request: \`${what}\` cannot be translated from ${from.key} to ${to.key}${why}`,
    );
  }
}

/** Paths of members in an error, in characters. */
const MOST_SHOWN = 200;

/**
 * Translates the body of a request. Throws `Untranslatable`, which names the member as the client knows it, if the body
 * is not valid or has something that `to` cannot express.
 */
export function translateRequest(
  from: ChatFormat,
  to: ProviderChatFormat,
  body: Json,
  target: CallTarget,
): { readonly request: ChatRequest; readonly body: Json } {
  const { request, plain } = withPlainNames(from.readRequest(body, target));
  try {
    return { request, body: to.writeRequest(plain) };
  } catch (error) {
    throw nameMember(error, from.memberNames);
  }
}

/** A request that a translation has written. */
class WrittenBody implements CallBody {
  readonly isReadable = true;
  readonly contentType = 'application/json';
  readonly files = 0;
  readonly value: Json;
  readonly #members: Record<string, unknown>;

  constructor(value: Json) {
    this.value = value;
    this.#members = { ...value };
  }

  original(): WrittenBody {
    return new WrittenBody(this.value);
  }

  fields(): string[] {
    return Object.keys(this.#members);
  }

  get(field: string): unknown {
    return this.#members[field];
  }

  has(field: string): boolean {
    return Object.hasOwn(this.#members, field);
  }

  set(field: string, value: unknown): void {
    this.#members[field] = value;
  }

  remove(field: string): void {
    delete this.#members[field];
  }

  encode(): string {
    return this.toString();
  }

  toString(): string {
    return JSON.stringify(this.#members);
  }
}
