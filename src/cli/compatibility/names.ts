// The keys and values of agentgateway's configuration schema, by place. Why this program lacks one is not written
// here: the page takes the reason from the diagnostic of the program's own schema. `-` in front: not built.

export interface CompatibilityPlace {
  readonly title: string;
  /** Path of the keys, or of the value, in a configuration; `0` is an item of a list, `*` any name. */
  readonly at: string;
  /** Whether `names` are values at the path instead of keys below it. */
  readonly hasValues?: true;
  readonly names: readonly ClaimedName[];
  /** Keys that are missing from those that work in part, by name. */
  readonly missing?: Readonly<Record<string, readonly string[]>>;
}

/** A name, and whether this program has it. */
export interface ClaimedName {
  readonly name: string;
  readonly isBuilt: boolean;
}

const words = (text: string): string[] => text.trim().split(/\s+/);

const names = (text: string): readonly ClaimedName[] =>
  words(text).map((word) => ({ name: word.replace('-', ''), isBuilt: !word.startsWith('-') }));

const GATEWAY_POLICIES = 'oidc jwtAuth authorization extAuthz extProc cors transformations basicAuth apiKey';

export const COMPATIBILITY: readonly CompatibilityPlace[] = [
  {
    title: 'Sections',
    at: '',
    names: names(`config binds frontendPolicies policies -workloads services backends routeGroups gateways
      routes tcpRoutes llm mcp ui`),
  },
  {
    title: 'Process settings',
    at: 'config',
    names:
      names(`-enableIpv6 -dns -localXdsPath modelCatalog database storage -caAddress -caAuthToken -xdsAddress
      -xdsAuthToken -spiffe -namespace -gateway -trustDomain -additionalTrustDomains -skipValidateTrustDomain
      -serviceAccount -clusterId -network adminAddr -standardAttributes statsAddr histograms readinessAddr session mcp
      sensitiveHeaders -customFunctions connectionTerminationDeadline -connectionMinTerminationDeadline
      workerThreads tracing logging metrics -backend -hbone`),
    missing: { logging: words('filter fields database') },
  },
  {
    title: 'Form of histograms',
    at: 'config.histograms',
    hasValues: true,
    names: names('classic native both'),
  },
  { title: 'Storage', at: 'config.storage', names: names('mode') },
  {
    title: 'Modes of the storage',
    at: 'config.storage.mode',
    hasValues: true,
    names: names('file -hybrid readOnly'),
  },
  {
    title: 'Settings of all connections and requests',
    at: 'frontendPolicies',
    names: names(`http tls tcp networkAuthorization networkExtAuthz -proxy -proxyProtocol -connect accessLog
      -logging tracing`),
    missing: {
      tracing: words('policies service backend'),
      http: words('http1HeaderCase'),
    },
  },
  { title: 'Binds', at: 'binds.0', names: names('port listeners tunnelProtocol mode') },
  { title: 'Modes of binds', at: 'binds.0.mode', hasValues: true, names: names('standard internal') },
  {
    title: 'Tunnels of binds',
    at: 'binds.0.tunnelProtocol',
    hasValues: true,
    names: names('direct -hboneWaypoint -hboneGateway -proxy connect'),
  },
  {
    title: 'Listeners of binds',
    at: 'binds.0.listeners.0',
    names: names('name -namespace hostname protocol tls routes tcpRoutes policies'),
  },
  {
    title: 'Policies of listeners of binds',
    at: 'binds.0.listeners.0.policies',
    names: names(GATEWAY_POLICIES),
  },
  {
    title: 'Gateways',
    at: 'gateways.*',
    names: names(`port protocol listeners tls ${GATEWAY_POLICIES}`),
  },
  {
    title: 'Listeners of gateways',
    at: 'gateways.*.listeners.0',
    names: names(`name hostname protocol tls ${GATEWAY_POLICIES}`),
  },
  {
    title: 'TLS of listeners',
    at: 'gateways.*.tls',
    names:
      names(`mode cert key root -spiffe cipherSuites minTLSVersion -minTlsVersion maxTLSVersion -maxTlsVersion
      keyExchangeGroups`),
  },
  {
    title: 'Routes',
    at: 'routes.0',
    names: names('gateways name namespace -ruleName hostnames matches policies backends'),
  },
  {
    title: 'Policies of routes',
    at: 'routes.0.policies',
    names: names(`requestHeaderModifier responseHeaderModifier requestRedirect urlRewrite requestMirror
      directResponse cors mcpAuthorization mcpGuardrails authorization mcpAuthentication a2a ai backendTLS
      -backendTunnel backendAuth localRateLimit remoteRateLimit jwtAuth oidc basicAuth apiKey extAuthz extProc
      transformations csrf buffer timeout retry delay`),
    missing: { backendTLS: words('alpn subjectAltNames keyExchangeGroups spiffe') },
  },
  {
    title: 'Backends of routes',
    at: 'routes.0.backends.0',
    names: names('weight policies service backend host -internal dynamic mcp ai aws routeGroup -invalid'),
  },
  {
    title: 'Policies of backends',
    at: 'routes.0.backends.0.policies',
    names: names(`requestHeaderModifier transformations backendTLS backendAuth http tcp -backendTunnel
      responseHeaderModifier requestRedirect -health extAuthz authorization mcpAuthorization mcpGuardrails a2a
      inferenceRouting -sessionAffinity ai`),
  },
  {
    title: 'Destinations of endpoint pickers',
    at: 'routes.0.backends.0.policies.inferenceRouting.destinationMode',
    hasValues: true,
    names: names('-validated passthrough'),
  },
  {
    title: 'Credentials for backends',
    at: 'routes.0.policies.backendAuth',
    names: names('key credentials passthrough gcp aws azure jwtSign oauthTokenExchange crossAppAccess'),
  },
  {
    title: 'Services of policies, such as `extAuthz`',
    at: 'routes.0.policies.extAuthz',
    names: names('-service host backend'),
  },
  {
    title: 'TCP routes',
    at: 'tcpRoutes.0',
    names: names('gateways name namespace -ruleName hostnames policies backends'),
  },
  {
    title: 'Backends of TCP routes',
    at: 'tcpRoutes.0.backends.0',
    names: names('weight policies -service host dynamic backend'),
    missing: { policies: words('backendTunnel') },
  },
  {
    title: 'Named backends',
    at: 'backends.0',
    names: names('name policies host -internal mcp ai aws'),
  },
  { title: 'Policies written apart', at: 'policies.0', names: names('name target phase policy') },
  {
    title: 'Targets of policies written apart',
    at: 'policies.0.target',
    names: names('gateway route backend -listenerSet'),
    missing: { route: words('ruleName kind'), backend: words('service') },
  },
  {
    title: 'MCP',
    at: 'mcp',
    names: names('gateways port targets statefulMode prefixMode failureMode dnsRebindingProtection policies'),
  },
  {
    title: 'MCP servers',
    at: 'mcp.targets.0',
    names: names('name policies sse mcp stdio openapi'),
    missing: {
      sse: words('backend'),
      mcp: words('backend'),
      openapi: words('backend'),
    },
  },
  {
    title: 'Policies of MCP servers',
    at: 'mcp.targets.0.policies',
    names: names('requestHeaderModifier transformations backendTLS backendAuth -http -tcp -backendTunnel'),
    missing: { transformations: words('response') },
  },
  {
    title: 'Identity providers of MCP clients',
    at: 'mcp.policies.mcpAuthentication.provider',
    names: names('auth0 keycloak okta descope authentik entra'),
  },
  {
    title: 'LLM',
    at: 'llm',
    names: names('gateways port -tls providers models virtualModels policies'),
  },
  {
    title: 'Policies of LLM calls',
    at: 'llm.policies',
    names: names(`${GATEWAY_POLICIES} guardrails localRateLimit remoteRateLimit`),
  },
  {
    title: 'Models',
    at: 'llm.models.0',
    names:
      names(`-id name visibility params provider passthrough authorization defaults overrides transformation
      finalTransformation requestHeaders responseHeaders backendTLS -tls auth health -backendTunnel guardrails
      promptCaching matches`),
    missing: { params: words('hostOverride pathOverride pathPrefix') },
  },
  {
    title: 'Providers of models',
    at: 'llm.models.0.provider',
    hasValues: true,
    names: names(`openai openAI gemini vertex anthropic bedrock azure -copilot cohere ollama baseten cerebras
      deepinfra deepseek groq huggingface mistral openrouter togetherai xai fireworks`),
  },
  {
    title: 'Providers of `ai` backends',
    at: 'routes.0.backends.0.ai.provider',
    names: names('openAI gemini vertex anthropic bedrock azure -copilot custom'),
  },
  {
    title: 'Guardrails of requests',
    at: 'llm.models.0.guardrails.request.0',
    names: names(`rejection scope regex webhook openAIModeration bedrockGuardrails googleModelArmor
      azureContentSafety`),
  },
];
