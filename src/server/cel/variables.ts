import { nearest } from '../../core/suggest.ts';

/**
 * Every root variable of the gateway with its first-level members; `undefined` where the members come from a client, a
 * token or another service. Not every place has every root.
 */
const ROOTS: Readonly<Record<string, readonly string[] | undefined>> = {
  request: [
    'method',
    'uri',
    'host',
    'scheme',
    'path',
    'pathAndQuery',
    'version',
    'headers',
    'body',
    'bodyPrefix',
    'startTime',
    'endTime',
  ],
  response: ['code', 'grpcStatus', 'headers', 'body', 'bodyPrefix'],
  jwt: undefined,
  source: [
    'address',
    'port',
    'rawAddress',
    'rawPort',
    'identity',
    'spiffeId',
    'subjectAltNames',
    'issuer',
    'subject',
    'subjectCn',
    'certificate',
    'unverifiedWorkload',
    'connectHeaders',
  ],
  destination: ['address', 'port', 'hostname'],
  extauthz: undefined,
  extproc: undefined,
  mcpGuardrails: undefined,
  metadata: undefined,
  llm: [
    'streaming',
    'requestModel',
    'responseModel',
    'provider',
    'inputTokens',
    'providerInputTokens',
    'inputImageTokens',
    'inputTextTokens',
    'inputAudioTokens',
    'cachedInputTokens',
    'cacheCreationInputTokens',
    'outputTokens',
    'outputImageTokens',
    'outputTextTokens',
    'outputAudioTokens',
    'reasoningTokens',
    'totalTokens',
    'providerTotalTokens',
    'serviceTier',
    'timeToFirstToken',
    'timePerOutputToken',
    'countTokens',
    'prompt',
    'completion',
    'toolCalls',
    'params',
    'cost',
    'costRates',
  ],
  llmRequest: undefined,
  mcp: ['methodName', 'sessionId', 'tool', 'prompt', 'resource', 'task'],
  apiKey: undefined,
  basicAuth: undefined,
  proxy: [
    'bind',
    'gateway',
    'listener',
    'route',
    'requestProcessingDuration',
    'upstreamDuration',
    'responseProcessingDuration',
  ],
  backend: ['name', 'type', 'protocol'],
  env: ['podName', 'namespace', 'gateway'],
};

/** All root names, in the order in which they are documented. */
export const ROOT_NAMES: readonly string[] = Object.keys(ROOTS);

/**
 * The member that was probably meant, when `member` is not one of `root` but close to one. A name that is close to
 * nothing passes: it reads as a missing key, and a newer upstream may know it.
 */
export function misspelledMember(root: string, member: string): string | undefined {
  const members = Object.hasOwn(ROOTS, root) ? ROOTS[root] : undefined;
  if (members === undefined || members.includes(member)) return undefined;
  return nearest(member, members);
}

/** What is wrong with a name that is no variable here, in words. */
export function unknownVariable(
  name: string,
  available: readonly string[],
): { message: string; help: string | undefined } {
  const list = available.length === 0 ? undefined : `available here: ${available.join(', ')}`;
  if (Object.hasOwn(ROOTS, name))
    return { message: `the variable \`${name}\` is not available here`, help: list };
  const similar = nearest(name, available) ?? nearest(name, ROOT_NAMES);
  if (similar !== undefined) {
    const where = available.includes(similar) ? '' : ', which is not available here';
    return {
      message: `unknown variable \`${name}\``,
      help: `a variable with a similar name exists: \`${similar}\`${where}`,
    };
  }
  // A bare word is most often a text without its quotes.
  return {
    message: `unknown variable \`${name}\``,
    help: `to write a text, quote it: "${name}"${list === undefined ? '' : `; ${list}`}`,
  };
}
