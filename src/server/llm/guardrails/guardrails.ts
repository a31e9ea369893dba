import { z } from 'zod';
import type { Path } from '../../../core/diagnostic.ts';
import type { AppError } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { mapping } from '../../../core/schema/mapping.ts';
import { GuardrailError, type Phase, UncheckableError } from '../../guardrails/outcome.ts';
import type { OwnPolicy } from '../../kernel/backend.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import type { Guard, GuardKind, Verdict } from './guard.ts';
import {
  CONTENT_SCOPES,
  type ContentScope,
  failed,
  type GuardedText,
  scopeOfRole,
  uncheckable,
} from './guarded-text.ts';
import { requestGuards, responseGuards } from './guards/index.ts';
import { compileRejection, rejectionError, rejectionSchema } from './rejection.ts';

type Schemas<Kinds extends readonly GuardKind[]> = {
  [Kind in Kinds[number] as Kind['key']]: z.ZodOptional<Kind['schema']>;
};

const optionalSchemas = <Kinds extends readonly GuardKind[]>(kinds: Kinds): Schemas<Kinds> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the kinds have these keys and schemas
  Object.fromEntries(kinds.map(({ key, schema }) => [key, schema.optional()])) as Schemas<Kinds>;

/** Reports an item that has no kind, or several. */
const exactlyOne =
  (kinds: readonly GuardKind[]) =>
  (item: object, context: z.RefinementCtx): void => {
    const keys = kinds.map(({ key }) => key);
    if (keys.filter((key) => membersOf(item)[key] !== undefined).length === 1) return;
    context.addIssue({
      code: 'custom',
      message: `expected exactly one of ${keys.map((key) => `\`${key}\``).join(', ')}`,
      params: { code: 'AGW0105' },
    });
  };

const DEFAULT_SCOPE: readonly ContentScope[] = ['systemPrompt', 'messages'];

const requestItem = z
  .strictObject({
    ...optionalSchemas(requestGuards),
    scope: z
      .array(z.enum(CONTENT_SCOPES))
      .min(1)
      .optional()
      .describe(
        'What is checked: system prompts, other messages, results of tools, arguments of tool calls, and definitions of tools and formats of answers. Only for `regex` and `bedrockGuardrails`. Texts of no such category, such as metadata, are checked in any case. Default: `[systemPrompt, messages]`.',
      ),
    rejection: rejectionSchema.optional(),
  })
  .superRefine(exactlyOne(requestGuards))
  .describe('One guardrail.');

const responseItem = z
  .strictObject({ ...optionalSchemas(responseGuards), rejection: rejectionSchema.optional() })
  .superRefine(exactlyOne(responseGuards))
  .describe('One guardrail.');

export const guardrailsSchema = z.lazy(() =>
  mapping('Checks of requests and responses.', {
    request: z
      .array(requestItem)
      .default([])
      .describe('Guardrails for requests, in order. Each receives the texts left by the previous one.'),
    response: z
      .array(responseItem)
      .default([])
      .describe('Guardrails for responses, in order. Streams are held back until they are checked.'),
    streaming: z
      .enum(['Enabled', 'Disabled'])
      .default('Enabled')
      .describe('`Disabled`: responses that are streams are not checked.'),
  }),
);

export interface Guardrails {
  readonly request: readonly Guard[];
  readonly response: readonly ResponseGuard[];
  close(): Promise<void>;
}

/** A guardrail for responses. */
export interface ResponseGuard extends Guard {
  /** Whether it checks streams, too. */
  readonly checksStreams: boolean;
}

type Config = z.output<typeof guardrailsSchema>;

/** Guardrails as a policy of their backend, or of one of its models. Empty if they check nothing. */
export function guardrailPolicy(config: Config | undefined, path: Path, model?: string): OwnPolicy[] {
  if (config === undefined || config.request.length + config.response.length === 0) return [];
  return [
    {
      key: 'guardrails',
      ...(model === undefined ? {} : { model }),
      ...{ path, schema: guardrailsSchema, config },
      dump: { ai: { promptGuard: config } },
    },
  ];
}

export function compileGuardrails(config: Config, context: CompileContext): Guardrails {
  if (config.request.length + config.response.length > 0) context.settings.secretNames.guarded.add('llm');
  const request = config.request.flatMap(
    (item, index) => compileItem(item, requestGuards, 'request', context.at('request', index)) ?? [],
  );
  const checksStreams = config.streaming === 'Enabled';
  const response = config.response.flatMap((item, index) => {
    const guard = compileItem(item, responseGuards, 'response', context.at('response', index));
    return guard === undefined ? [] : [{ ...guard, checksStreams }];
  });
  return {
    request,
    response,
    close: async () => {
      await Promise.all([...request, ...response].map((guard) => guard.close()));
    },
  };
}

function compileItem(
  item: Config['request'][number] | Config['response'][number],
  kinds: readonly GuardKind[],
  phase: Phase,
  context: CompileContext,
): Guard | undefined {
  const settings = item as Readonly<Record<string, unknown>>;
  const kind = kinds.find(({ key }) => settings[key] !== undefined);
  if (kind === undefined) return undefined;
  const scope = 'scope' in item ? item.scope : undefined;
  if (!kind.hasScope && scope !== undefined && !isDefault(scope))
    context.at('scope').report({
      code: 'AGW0104',
      message: `\`${kind.key}\` always checks system prompts and messages`,
      help: 'remove `scope`, or use `regex`',
    });
  if (!kind.hasRejection && item.rejection !== undefined)
    context.at('rejection').report({
      code: 'AGW0303',
      atKey: true,
      message: `\`rejection\` has no effect: the ${kind.key} chooses status and body`,
      help: 'remove `rejection`',
    });
  const rejection = compileRejection(item.rejection ?? rejectionSchema.parse({}));
  const guard = kind.compile(
    settings[kind.key],
    { phase, rejection, scope: scope ?? DEFAULT_SCOPE },
    context.at(kind.key),
  );
  return guard && { ...guard, rejection };
}

const isDefault = (scope: readonly ContentScope[]): boolean =>
  DEFAULT_SCOPE.every((name) => scope.includes(name)) && scope.every((name) => DEFAULT_SCOPE.includes(name));

/**
 * Runs guardrails in order; each receives the texts left by the previous one. Returns the texts, masked or not. Throws
 * an `AppError` if a guardrail rejects (with its status and body), fails (503), or cannot read a text (413, 502).
 */
export async function runGuards(
  guards: readonly Guard[],
  phase: Phase,
  texts: readonly GuardedText[],
  lookup: VariableResolver,
  signal: AbortSignal,
): Promise<readonly GuardedText[]> {
  let current = texts;
  for (const guard of guards) {
    const seen = current.filter((text) => guard.sees(text));
    if (seen.length === 0 && current.length > 0) continue;
    try {
      const verdict = maskable(await guard.check(seen, lookup, signal), seen, guard);
      lookup.observed?.observer.guardrail(phase, verdict.kind, guard.place);
      if (verdict.kind === 'reject') throw rejectionError(verdict.rejection, guard.kind);
      if (verdict.kind === 'mask') current = masked(current, seen, verdict.texts, phase);
    } catch (error) {
      throw guardError(error, guard, { phase, lookup, signal });
    }
  }
  return current;
}

function guardError(
  error: unknown,
  { place, name }: Guard,
  {
    phase,
    lookup,
    signal,
  }: { readonly phase: Phase; readonly lookup: VariableResolver; readonly signal: AbortSignal },
): AppError | unknown {
  if (error instanceof GuardrailError) {
    lookup.observed?.observer.guardrail(phase, 'failed', place, error.message);
    if (error instanceof UncheckableError) return uncheckable(phase, error.message);
    return failed(phase, `${name}: ${error.message}`);
  }
  // The client disconnected during the check: the error is only for the log.
  return signal.aborted ? failed(phase, 'the client disconnected') : error;
}

/** The verdict; a rejection in place of a mask that changes a text which has to stay as it is. */
function maskable(verdict: Verdict, seen: readonly GuardedText[], { rejection }: Guard): Verdict {
  if (verdict.kind !== 'mask' || verdict.texts.length !== seen.length) return verdict;
  const isFixed = seen.some(({ form, content }, index) => {
    const masked = verdict.texts[index]?.content ?? '';
    return masked !== content && (form === 'fixed' || (form === 'url' && !URL.canParse(asUrl(masked))));
  });
  return isFixed ? { kind: 'reject', rejection } : verdict;
}

/** Masks contain signs that URLs must not have. */
const asUrl = (text: string): string => text.replaceAll('<', '%3C').replaceAll('>', '%3E');

/** All texts, with those that a guardrail saw replaced by its mask. */
function masked(
  texts: readonly GuardedText[],
  seen: readonly GuardedText[],
  results: readonly Pick<GuardedText, 'role' | 'content'>[],
  phase: Phase,
): readonly GuardedText[] {
  if (results.length === seen.length) {
    const byText = new Map(seen.map((text, index) => [text, results[index]?.content ?? '']));
    return texts.map((text) => {
      const content = byText.get(text);
      if (content === undefined || content === text.content) return text;
      return withContent(text, text.form === 'url' ? asUrl(content) : content);
    });
  }
  if (phase === 'response') throw failed('response', 'the mask has a different number of choices');
  // Texts outside of the conversation stay beside other messages.
  const outside = texts.filter((text) => text.isOutside === true);
  if (seen.length !== texts.length - outside.length || seen.some((text) => text.isOutside === true))
    throw failed('request', 'the mask has a different number of texts than the request');
  const messages = results.map(
    ({ role, content }): GuardedText => ({ role, content, part: 'content', scope: scopeOfRole(role) }),
  );
  return [...messages, ...outside];
}

/** The text with other content. What is decided keeps its distance from the end if the text after it is unchanged. */
function withContent({ decided, ...text }: GuardedText, content: string): GuardedText {
  if (decided === undefined) return { ...text, content };
  const rest = text.content.slice(decided);
  return content.endsWith(rest)
    ? { ...text, content, decided: content.length - rest.length }
    : { ...text, content };
}
