import { elementsOf, entryIn, membersOf, shownValue, stringIn, textIn } from '../../../core/foreign.ts';
import { isPattern } from '../patterns.ts';
import { type PlaceholderContext, UNKNOWN_URL } from '../placeholders.ts';
import { literalText } from '../values.ts';
import type { Lost } from './lost.ts';
import { reference, secret, withoutOsEnviron } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** What is checked before a call, and after it, in order. */
export interface Checks {
  readonly request: readonly Entry[];
  readonly response: readonly Entry[];
}

/** The guardrails of a file. */
export interface Guardrails {
  /** Of all models: those with `default_on`. */
  readonly all: Checks;
  /** Those that models may name. */
  readonly named: ReadonlyMap<string, Checks>;
}

interface At {
  readonly name: string;
  readonly params: Entry;
  readonly context: PlaceholderContext;
  readonly lost: Lost;
}

type Phase = keyof Checks;

/** LiteLLM answers 400 to what it blocks. */
const REJECTION = { status: 400 };

/** The kinds that have a counterpart: the checks of one phase. */
const KINDS: Readonly<Record<string, (phase: Phase, at: At) => readonly Entry[]>> = {
  litellm_content_filter: contentFilter,
  openai_moderation: moderation,
};

/** What has the place of other kinds. */
const COUNTERPARTS: Readonly<Record<string, string>> = {
  bedrock: '`bedrockGuardrails`',
  model_armor: '`googleModelArmor`',
  'azure/text_moderations': '`azureContentSafety`',
  'azure/prompt_shield': '`azureContentSafety`',
  presidio: '`regex` with `builtin` patterns, or a `webhook`',
  'hide-secrets': '`regex` with `builtin: apiKey`',
  hide_secrets: '`regex` with `builtin: apiKey`',
};

const PHASES: Readonly<Record<string, Phase>> = {
  pre_call: 'request',
  // Beside the call, whose answer waits for it.
  during_call: 'request',
  post_call: 'response',
};

/** Reads `guardrails`. What is not imported is a warning, because nothing checks it now. `named`: those that models name. */
export function guardrailsOf(
  list: unknown,
  named: ReadonlySet<string>,
  context: PlaceholderContext,
  lost: Lost,
): Guardrails {
  const all = { request: [] as Entry[], response: [] as Entry[] };
  const found = new Map<string, Checks>();
  for (const [index, each] of elementsOf(list).map(membersOf).entries()) {
    const name = stringIn(each['guardrail_name']) ?? `guardrails[${index}]`;
    const params = membersOf(each['litellm_params']);
    const warn = (key: string, reason: string): void =>
      lost.add(key, reason, { owner: name, isWarning: true });
    const kind = textIn(params['guardrail']);
    const checksIn = entryIn(KINDS, kind);
    const isForAll = params['default_on'] === true;
    if (checksIn === undefined || (!isForAll && !named.has(name))) {
      const place = entryIn(COUNTERPARTS, kind) ?? 'a `webhook`';
      if (checksIn === undefined)
        warn('guardrails', `\`${kind}\`: ${place} has its place (docs/guardrails.md)`);
      else warn('guardrails', ON_DEMAND);
      lost.covered.add(`guardrails.${index}`);
      continue;
    }
    const { mode } = params;
    const modes = mode === undefined || mode === null ? ['pre_call'] : Array.isArray(mode) ? mode : [mode];
    for (const other of modes.filter((one) => entryIn(PHASES, shownValue(one)) === undefined))
      warn(`mode: ${shownValue(other)}`, NO_PHASE);
    const phases = new Set(modes.flatMap((one) => entryIn(PHASES, shownValue(one)) ?? []));
    const at = { name, params, context, lost };
    const checks = {
      request: phases.has('request') ? checksIn('request', at) : [],
      response: phases.has('response') ? checksIn('response', at) : [],
    };
    // Those of all models check the calls of a model that names them, too.
    found.set(name, isForAll ? { request: [], response: [] } : checks);
    if (!isForAll) continue;
    all.request.push(...checks.request);
    all.response.push(...checks.response);
  }
  return { all, named: found };
}

const ON_DEMAND =
  'it checks only calls that name it in their body, which nothing reads here: with `default_on: true` it is imported for all models';
const NO_PHASE =
  'models are checked before and after a call; guardrails of MCP servers are `mcp.policies.mcpGuardrails`';

/** As a member of a configuration; undefined without checks. */
export function written({ request, response }: Checks): Entry | undefined {
  if (request.length + response.length === 0) return undefined;
  return { ...(request.length > 0 && { request }), ...(response.length > 0 && { response }) };
}

/** Kinds of data that both programs know. LiteLLM's other ones are expressions of its own. */
const BUILTINS: Readonly<Record<string, string>> = {
  email: 'email',
  us_ssn: 'ssn',
  credit_card: 'creditCard',
};

/** Patterns and words, of which each says what happens to a match. */
function contentFilter(phase: Phase, { name, params, lost }: At): readonly Entry[] {
  const warn = (key: string, reason: string): void => lost.add(key, reason, { owner: name, isWarning: true });
  const rules = { reject: [] as Entry[], mask: [] as Entry[] };
  const add = (action: unknown, rule: Entry): void => {
    rules[/^mask$/i.test(textIn(action)) ? 'mask' : 'reject'].push(rule);
  };
  for (const each of elementsOf(params['patterns']).map(membersOf)) {
    const { pattern_type: type, pattern_name: known, pattern: own, action } = each;
    const builtin = entryIn(BUILTINS, textIn(known));
    // LiteLLM compares without regard to case.
    const pattern = `(?i)${textIn(own)}`;
    if (builtin !== undefined) add(action, { builtin });
    else if (type !== 'regex')
      warn(`patterns: ${shownValue(known)}`, 'set it as `regex`: a `builtin` or a `pattern`');
    else if (isPattern(pattern)) add(action, { pattern: literalText(pattern) });
    else warn(`patterns: ${textIn(own)}`, 'not a regular expression that RE2 supports');
  }
  for (const each of elementsOf(params['blocked_words']).map(membersOf)) {
    const { keyword, action } = each;
    const word = textIn(keyword).replaceAll(/[\\^$.|?*+()[\]{}]/g, '\\$&');
    if (word !== '') add(action, { pattern: literalText(`(?i)${word}`) });
  }
  const scope = phase === 'request' && { scope: ['systemPrompt', 'messages', 'toolOutput'] };
  return [
    ...(rules.reject.length > 0
      ? [{ regex: { action: 'reject', rules: rules.reject }, ...scope, rejection: REJECTION }]
      : []),
    ...(rules.mask.length > 0 ? [{ regex: { action: 'mask', rules: rules.mask }, ...scope }] : []),
  ];
}

/** The moderation API of OpenAI. */
function moderation(phase: Phase, { name, params, context, lost }: At): readonly Entry[] {
  if (phase === 'response') {
    lost.add('mode: post_call', '`openAIModeration` checks requests only: a `webhook` checks answers', {
      owner: name,
      isWarning: true,
    });
    return [];
  }
  const { api_key: key, api_base: base, model } = params;
  const given = stringIn(key);
  const auth =
    given === undefined
      ? reference('OPENAI_API_KEY', context)
      : secret(`${name}_API_KEY`, given, name, context);
  const baseUrl = stringIn(base)?.replace(/(?:\/v1)?\/*$/, '');
  return [
    {
      openAIModeration: {
        ...(typeof model === 'string' && { model: withoutOsEnviron(model, context) }),
        ...(baseUrl !== undefined && { baseUrl: withoutOsEnviron(baseUrl, context, UNKNOWN_URL) }),
        policies: { backendAuth: { key: auth } },
      },
      rejection: REJECTION,
    },
  ];
}
