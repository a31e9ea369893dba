import type { CallBody } from '../call-body.ts';
import { llmError } from '../errors.ts';
import type { FormatKey } from '../formats/format.ts';
import type { ProviderFormat } from '../providers/provider.ts';
import type { ChatRequest } from './chat.ts';
import {
  type CallTarget,
  type ChatFormat,
  type Json,
  type ProviderChatFormat,
  Untranslatable,
} from './chat-format.ts';
import { parseExactly } from './exact-json.ts';
import { chatFormats, providerChatFormats } from './index.ts';
import { translateRequest } from './translate-request.ts';
import { WrittenBody } from './written-body.ts';

/** The wire format that a call is sent in. */
export interface ChosenFormat {
  readonly provider: ProviderFormat;
  /** Formats to translate between, if that of the client is another one. */
  readonly translation?: { readonly from: ChatFormat; readonly to: ProviderChatFormat };
}

/** A call whose client and provider have different formats. */
export interface Translation {
  readonly client: ChatFormat;
  readonly provider: ProviderChatFormat;
  /** The client's request, as changed by the configuration and guardrails. */
  readonly request: ChatRequest;
}

/**
 * The format for the provider: that of the client if the provider has it, else the first that a translation exists for.
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
  const from = chatFormats.find(({ key }) => key === client);
  for (const provider of from === undefined ? [] : formats) {
    const to = providerChatFormats.find(({ key }) => key === provider.type);
    if (from !== undefined && to !== undefined) return { provider, translation: { from, to } };
  }
  const known = formats.map(({ type }) => type).join(', ');
  throw llmError(
    'llm_invalid',
    'unsupported_endpoint',
    `the provider of model \`${model.name}\` does not support calls of the type ${client}: it supports ${known}`,
  );
}

/** Translates a request. Throws an `AppError` (400) that names the member that cannot be translated. */
export function translateCall(
  { from, to }: NonNullable<ChosenFormat['translation']>,
  body: CallBody,
  target: CallTarget,
): { readonly translation: Translation; readonly body: CallBody } {
  try {
    const translated = translateRequest(from, to, parseExactly(body.toString()) as Json, target);
    const translation = { client: from, provider: to, request: translated.request };
    return { translation, body: new WrittenBody(translated.body) };
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    const why = error.why === undefined ? '' : `: ${error.why}`;
    // Names of members are the client's, and may have any length.
    const what = error.what.length > MOST_SHOWN ? `${error.what.slice(0, MOST_SHOWN)}…` : error.what;
    throw llmError(
      'llm_invalid',
      'untranslatable',
      `failed to process LLM request: \`${what}\` cannot be translated from ${from.key} to ${to.key}${why}`,
    );
  }
}

/** Paths of members in an error, in characters. */
const MOST_SHOWN = 200;
