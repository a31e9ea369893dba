// The variables and functions of agentgateway's expressions. The page and its test compare them with those of this program;
// only the reasons are written here.

const words = (text: string): string[] => text.trim().split(/\s+/);

/** By dotted path. Members of a list are left out: they are read from values that a client or model has written. */
export const CEL_VARIABLES: readonly string[] = words(`
  request.method request.uri request.host request.scheme request.path request.pathAndQuery request.version
  request.headers request.body request.bodyPrefix request.startTime request.endTime
  response.code response.grpcStatus response.headers response.body response.bodyPrefix
  proxy.bind proxy.gateway.namespace proxy.gateway.name proxy.listener.name proxy.route.namespace proxy.route.name
  proxy.route.kind proxy.route.rule proxy.requestProcessingDuration proxy.upstreamDuration
  proxy.responseProcessingDuration env.podName env.namespace env.gateway jwt jwt.rawToken apiKey apiKey.key
  basicAuth.username
  llm.streaming llm.requestModel llm.responseModel llm.provider llm.inputTokens llm.providerInputTokens
  llm.inputImageTokens llm.inputTextTokens llm.inputAudioTokens llm.cachedInputTokens llm.cacheCreationInputTokens
  llm.outputTokens llm.outputImageTokens llm.outputTextTokens llm.outputAudioTokens llm.reasoningTokens llm.totalTokens
  llm.providerTotalTokens llm.serviceTier llm.timeToFirstToken llm.timePerOutputToken llm.countTokens llm.prompt
  llm.completion llm.toolCalls llm.params llm.cost.total llm.cost.input llm.cost.output llm.cost.cacheRead
  llm.cost.cacheWrite llm.cost.reasoning llm.cost.inputAudio llm.cost.outputAudio llm.costRates.input
  llm.costRates.output llm.costRates.cacheRead llm.costRates.cacheWrite llm.costRates.reasoning
  llm.costRates.inputAudio llm.costRates.outputAudio llmRequest
  source.address source.port source.rawAddress source.rawPort source.identity.trustDomain source.identity.namespace
  source.identity.serviceAccount source.spiffeId source.subjectAltNames source.issuer source.subject source.subjectCn
  source.certificate source.unverifiedWorkload source.connectHeaders
  destination.address destination.port destination.hostname
  mcp.methodName mcp.sessionId mcp.tool.target mcp.tool.name mcp.tool.arguments mcp.tool.result mcp.tool.error
  mcp.prompt.target mcp.prompt.name mcp.resource.target mcp.resource.name mcp.task.target mcp.task.name
  backend.name backend.type backend.protocol extauthz extproc mcpGuardrails metadata`);

/** Why a variable is never set. */
export const UNSET_VARIABLES: Readonly<Record<string, string>> = {
  'proxy.bind': '`proxy.listener.name` names the listener',
  'proxy.route.namespace': 'routes have no Kubernetes namespace',
  'proxy.route.kind': 'routes have no Kubernetes kind',
  'proxy.route.rule': 'routes have no rules with names of their own',
  'jwt.rawToken': 'expressions do not get tokens: `backendAuth.passthrough` sends the token to the backend',
  'apiKey.key': 'expressions do not get keys: `apiKey` has the `metadata` of the key',
  'llm.providerInputTokens': 'counts are the same for all providers: `llm.inputTokens`',
  'llm.providerTotalTokens': 'counts are the same for all providers: `llm.totalTokens`',
  'llm.inputImageTokens': 'tokens are not counted by kind, except audio and reasoning',
  'llm.inputTextTokens': 'tokens are not counted by kind, except audio and reasoning',
  'llm.outputImageTokens': 'tokens are not counted by kind, except audio and reasoning',
  'llm.outputTextTokens': 'tokens are not counted by kind, except audio and reasoning',
  'llm.serviceTier': 'not built',
  'llm.countTokens': 'not built',
  'source.unverifiedWorkload': 'workloads exist only with a Kubernetes control plane',
  'source.connectHeaders': 'the headers of CONNECT requests are not kept',
};

/** Functions, macros, and methods with a dot in front. */
export const CEL_FUNCTIONS: readonly string[] = words(`
  json toJson unvalidatedJwtPayload .with variables .mapValues .filterKeys .merge flatten flattenRecursive base64.encode
  base64.decode url.encode url.decode form.decode form.encode sha1.encode sha256.encode md5.encode random default coalesce
  .regexReplace fail uuid .contains size has .map .filter .all max .startsWith .endsWith string bytes double .exists
  .exists_one int uint .matches duration timestamp .getFullYear .getMonth .getDayOfYear .getDayOfMonth .getDate
  .getDayOfWeek .getHours .getMinutes .getSeconds .getMilliseconds .charAt .indexOf .join .lastIndexOf .lowerAscii
  .upperAscii .trim .replace .split .substring .stripPrefix .stripSuffix math.least math.greatest math.ceil math.floor
  math.round math.trunc math.isInf math.isNaN math.isFinite math.abs math.sign math.sqrt math.bitAnd math.bitOr
  math.bitXor math.bitNot math.bitShiftLeft math.bitShiftRight isIP ip .family .isUnspecified .isLoopback
  .isLinkLocalMulticast .isLinkLocalUnicast .isGlobalUnicast cidr .containsIP .containsCIDR .ip .masked .prefixLength
  .redacted .raw .cookie .query .addQuery .setQuery .unredacted`);
