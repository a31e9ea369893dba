import { jsonIn } from '../../../../core/foreign.ts';
import { argumentsSchema } from '../../chat/arguments-schema.ts';
import type {
  ChatRequest,
  FilePart,
  ImagePart,
  OutputFormat,
  Part,
  ReasoningPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
} from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { asFunction, functionArguments } from '../../chat/custom-tools.ts';
import { defined } from '../../chat/defined.ts';
import { refuseMember, refuseMembers, refusePart } from '../../chat/refusals.ts';
import { partsOfId } from '../../chat/tool-call-id.ts';
import {
  isText,
  joinTexts,
  mergeTurns,
  refuseNames,
  resultsFirst,
  withoutLooseReasoning,
  withUserTurn,
} from '../../chat/turns.ts';
import { asUserTurn } from '../messages/write-turns.ts';
import { plainReferences } from './plain-references.ts';
import { thinkingConfig } from './thinking.ts';
import { signed } from './thought-signature.ts';

/**
 * Writes the body of `generateContent`. It leaves out wishes that Gemini has no member for (cached prompts, which Gemini
 * finds itself, verbosity, the detail of images, the identifier of the end user, metadata of stored calls), and reasoning
 * of earlier answers without a signature: Gemini does not read it.
 */
export function writeRequest(given: ChatRequest): Json {
  const request = withUserTurn(given);
  refuseMembers(request, ['logprobs', 'logitBias']);
  const { system, tools, toolChoice } = request;
  if (tools.length > 0 && request.parallelToolCalls === false)
    refuseMember('parallelToolCalls', 'Gemini cannot be limited to one call at a time');
  const instructions = system.filter(({ text }) => text !== '').map(({ text }) => ({ text }));
  return defined({
    systemInstruction: instructions.length === 0 ? undefined : { parts: instructions },
    contents: contentsOf(request),
    tools: tools.length === 0 ? undefined : [{ functionDeclarations: tools.map(declaration) }],
    toolConfig:
      toolChoice === undefined || tools.length === 0
        ? undefined
        : { functionCallingConfig: callingConfig(toolChoice) },
    generationConfig: generationConfig(request),
    serviceTier: writeServiceTier(request.serviceTier),
  });
}

/** The function of each tool call: results name their function, too. */
function callNames(turns: readonly Turn[]): ReadonlyMap<string, string> {
  const calls = turns.flatMap(({ parts }) => parts).filter((part) => part.type === 'toolCall');
  return new Map(calls.map(({ id, name }) => [id, name]));
}

function contentsOf({ turns, model }: ChatRequest): Json[] {
  refuseNames(turns, 'Gemini');
  const names = callNames(turns);
  // The results of parallel calls must be in one content.
  return mergeTurns(withoutLooseReasoning(turns.map(asUserTurn)))
    .map(({ role, parts }) => ({
      role: role === 'assistant' ? 'model' : 'user',
      parts: signed(
        resultsFirst(parts).flatMap((part) => writePart(part, names)),
        model,
      ),
    }))
    .filter(({ parts }) => parts.length > 0);
}

function writePart(part: Part, names: ReadonlyMap<string, string>): Json[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ text: part.text }];
    case 'image':
    case 'file':
      return [media(part)];
    case 'audio':
      return [{ inlineData: { mimeType: `audio/${part.format}`, data: part.data } }];
    case 'toolCall':
      return [functionCall(part)];
    case 'toolResult':
      return [functionResponse(part, names)];
    case 'reasoning':
      return reasoning(part);
  }
}

/** The reasoning that Gemini signed, as it came. */
function reasoning({ text, signature, origin }: ReasoningPart): Json[] {
  if (origin !== 'generateContent' || signature === undefined) return [];
  return [{ text, thought: true, thoughtSignature: signature }];
}

/** Files of the Gemini API and of Cloud Storage. */
const GOOGLE_FILE = /^(?:https:\/\/generativelanguage\.googleapis\.com\/|gs:\/\/)/;

export const isGoogleFile = (uri: string): boolean => GOOGLE_FILE.test(uri);

/** Media types of files whose URL ends with this. Vertex AI requires a type beside a URL. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  pdf: 'application/pdf',
  png: 'image/png',
  txt: 'text/plain',
  webp: 'image/webp',
};

function media(part: ImagePart | FilePart): Json {
  const { source } = part;
  switch (source.kind) {
    case 'data':
      return { inlineData: { mimeType: source.mediaType, data: source.data } };
    case 'text':
      return { inlineData: { mimeType: 'text/plain', data: Buffer.from(source.text).toString('base64') } };
    case 'url':
      return fileData(source.url);
    case 'id':
      if (!isGoogleFile(source.id)) return refusePart(part, 'it is a file of another provider');
      return fileData(source.id);
  }
}

function fileData(fileUri: string): Json {
  const extension = /\.([a-z]+)(?:[?#]|$)/i.exec(fileUri)?.[1]?.toLowerCase() ?? '';
  const mimeType = MEDIA_TYPES[extension];
  return { fileData: { fileUri, ...(mimeType === undefined ? {} : { mimeType }) } };
}

function functionCall(call: ToolCallPart): Json {
  const { id, signature } = partsOfId(call.id);
  return {
    functionCall: { id, name: call.name, args: argumentsOf(call) },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
  };
}

/** The arguments of a call as an object. An empty text means no arguments. */
function argumentsOf(call: ToolCallPart): unknown {
  const text = functionArguments(call);
  const value = text.trim() === '' ? {} : jsonIn(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? value : refusePart(call, 'the arguments are not the JSON text of an object');
}

function functionResponse(result: ToolResultPart, names: ReadonlyMap<string, string>): Json {
  const { callId, parts, isError } = result;
  const name =
    names.get(callId) ?? refusePart(result, 'its call is not in the conversation, and Gemini needs its name');
  const text = joinTexts(parts.filter(isText));
  const files = parts.flatMap((part) => (part.type === 'text' ? [] : [media(part)]));
  return {
    functionResponse: {
      id: partsOfId(callId).id,
      name,
      // Gemini reads these two names (Gemini API, "FunctionResponse").
      response: isError === true ? { error: text } : { output: text },
      ...(files.length === 0 ? {} : { parts: files }),
    },
  };
}

function declaration(tool: Tool): Json {
  const { name, description, parameters } = asFunction(tool);
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined
      ? {}
      : { parametersJsonSchema: plainReferences(argumentsSchema(parameters)) }),
  };
}

function callingConfig(choice: ToolChoice): Json {
  switch (choice.mode) {
    case 'auto':
      return { mode: 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'tool':
      return { mode: 'ANY', allowedFunctionNames: [choice.name] };
    case 'allowed':
      // `VALIDATED`: a call of one of these functions, or text.
      return { mode: choice.isRequired ? 'ANY' : 'VALIDATED', allowedFunctionNames: choice.names };
  }
}

function generationConfig(request: ChatRequest): Json | undefined {
  const { model, maxTokens, temperature, topP, topK, stop, presencePenalty, frequencyPenalty } = request;
  const config = defined({
    maxOutputTokens: maxTokens,
    temperature,
    topP,
    topK,
    stopSequences: stop,
    presencePenalty,
    frequencyPenalty,
    seed: request.seed,
    candidateCount: request.count,
    ...outputFormat(request.output),
    thinkingConfig: request.reasoning === undefined ? undefined : thinkingConfig(request.reasoning, model),
  });
  return Object.keys(config).length === 0 ? undefined : config;
}

/** Gemini always follows a schema strictly, and does not read its name. */
function outputFormat(output: OutputFormat | undefined): Json {
  if (output === undefined) return {};
  const responseMimeType = 'application/json';
  return output.type === 'json'
    ? { responseMimeType }
    : { responseMimeType, responseJsonSchema: plainReferences(output.schema) };
}

function writeServiceTier(tier: string | undefined): string | undefined {
  if (tier === undefined || tier === 'auto') return undefined;
  if (tier === 'default' || tier === 'standard') return 'standard';
  return tier === 'flex' || tier === 'priority'
    ? tier
    : refuseMember('serviceTier', 'Gemini has no such tier');
}
