import { elementsOf, isRecord } from '../../../core/foreign.ts';
import { clientFormatOf, type FormatKey } from '../formats/index.ts';

/** A model that a request names beside `model` of its body: an alternative, or the model of a tool. */
export interface NamedModel {
  readonly name: string;
  /** The member that names it, for error messages. */
  readonly member: string;
}

/**
 * Members with names of models, at any depth and in any case, so that one that an API adds later counts, too: `models` of
 * OpenRouter, `fallbacks` of LiteLLM, `fallback_model` and the `model` of tools of Anthropic and OpenAI, `modelId` of Amazon
 * Bedrock.
 */
const NAMES_MODELS = /(?:models?|fallbacks?)(?:_?(?:ids?|names?))?$/i;

/** Further names that OpenAI and Azure gave to `model` of the call. Elsewhere they are, for example, engines of web searches. */
const OLD_NAMES = /^(?:engine|deployment(?:_?id)?)$/i;

/** Members by which the provider chooses a model: OpenRouter's API reference, "Model routing" and "Presets". */
const CHOOSES_MODEL: ReadonlySet<string> = new Set(['route', 'preset']);

/** Stands for any model, as in `allowedModels`. */
const ANY = '*';

/** Texts, data and schemas of the client: nothing in them names a model for the provider. */
const NOT_SEARCHED: ReadonlySet<string> = new Set([
  'messages',
  'contents',
  'content',
  'system',
  'systemInstruction',
  'system_instruction',
  'documents',
  'metadata',
  'labels',
  'variables',
  'arguments',
  'args',
  'parameters',
  'parametersJsonSchema',
  'parameters_json_schema',
  'properties',
  'input_schema',
  'inputSchema',
  'schema',
  'responseSchema',
  'response_schema',
  'responseJsonSchema',
  'response_json_schema',
]);

/** Every model that a request body names beside `model` at its top, which is the model of the call. */
export function namedModels(body: Readonly<Record<string, unknown>>, format?: FormatKey): NamedModel[] {
  const found: NamedModel[] = [];
  const ownItems = clientFormatOf(format)?.modelInItems?.field;
  for (const [key, value] of Object.entries(body)) {
    if (key === 'model') continue;
    if (typeof value === 'string' && OLD_NAMES.test(key)) found.push({ name: value, member: key });
    // OpenRouter tries `models` in their order, which are checked themselves.
    const isOrdered = key === 'route' && elementsOf(body['models']).length > 0;
    if (typeof value === 'string' && CHOOSES_MODEL.has(key) && !isOrdered)
      found.push({ name: ANY, member: key });
    // Each request of a batch of embeddings has to name the model of the call, and the gateway writes it.
    if (key === ownItems) continue;
    // The items of a conversation, or the texts of embeddings.
    if (key !== 'input' || !Array.isArray(value)) searchMember(key, value, found);
  }
  return found;
}

/** Whether the name of a query parameter says that its value names a model. */
export const isModelParameter = (name: string): boolean => NAMES_MODELS.test(name) || OLD_NAMES.test(name);

function searchMember(key: string, value: unknown, found: NamedModel[]): void {
  if (NOT_SEARCHED.has(key)) return;
  if (NAMES_MODELS.test(key)) addNames(key, value, found);
  else search(value, found);
}

function search(value: unknown, found: NamedModel[]): void {
  if (Array.isArray(value)) for (const item of value) search(item, found);
  else if (isRecord(value))
    for (const [key, member] of Object.entries(value)) searchMember(key, member, found);
}

/** Adds what a member names: a name, a list of names or of objects with a name, or a map of a model to its alternatives. */
function addNames(member: string, value: unknown, found: NamedModel[]): void {
  // The Gemini API writes names in bodies as paths.
  if (typeof value === 'string' && value !== '') found.push({ name: value.replace(/^models\//, ''), member });
  else if (Array.isArray(value)) for (const item of value) addNames(member, item, found);
  else if (isRecord(value))
    for (const [key, inner] of Object.entries(value)) {
      const isAlternatives = Array.isArray(inner) && !NOT_SEARCHED.has(key) && !NAMES_MODELS.test(key);
      if (isAlternatives) found.push({ name: key, member });
      if (isAlternatives || /^(?:id|name)$/i.test(key)) addNames(member, inner, found);
      else searchMember(key, inner, found);
    }
}
