/**
 * What the two specifications require, one entry per sentence or table row, in our own words. Tests cite
 * the ids (`kit/verifies.ts`); `requirements.test.ts` fails when an id is cited by no test. Sentences that only say
 * that something is not specified have no entry.
 */

export interface Requirement {
  /** Document and heading of the requirement. */
  readonly source: string;
  readonly text: string;
  /** The capability that is missing. Remove it with the first test that cites the id. */
  readonly deferred?: string;
}

type Row = string | Omit<Requirement, 'source'>;

function section<Id extends string>(source: string, rows: Record<Id, Row>): Record<Id, Requirement> {
  const entries = Object.entries<Row>(rows).map(([id, row]) => [
    id,
    { source, ...(typeof row === 'string' ? { text: row } : row) },
  ]);
  return Object.fromEntries(entries) as Record<Id, Requirement>;
}

const service = section('gateway.md#What the service does', {
  'gateway.service.1': 'The gateway takes its configuration from the YAML file named with -f.',
  'gateway.service.1.schema-comment': 'A configuration file begins with a comment that names its schema.',
  'gateway.service.2': 'Listeners have routes.',
  'gateway.service.2.backends': 'A route has backends.',
  'gateway.service.2.policies': 'A route has policies.',
  'gateway.service.3': 'An MCP backend proxies one or several MCP targets.',
  'gateway.service.3.stdio': 'A target is a local process that communicates over stdin and stdout.',
  'gateway.service.4': 'An MCP route can require a bearer JWT of an external identity provider.',
  'gateway.service.4.claims': 'CEL authorization rules can read the claims of that token.',
  'gateway.service.5': 'OAuth discovery documents for MCP clients are served.',
  'gateway.service.5.registration': 'Dynamic client registration is relayed to the identity provider.',
  'gateway.service.6': 'An HTTP service can authorize the requests of a route.',
  'gateway.service.6.metadata': 'Values of its response can become fields of the access log.',
  'gateway.service.7': 'A top-level llm section serves an OpenAI-compatible chat endpoint.',
  'gateway.service.7.forward': 'Chat requests are forwarded to the configured provider.',
  'gateway.service.7.rewrite': 'CEL transformations rewrite fields of the request.',
  'gateway.service.7.guardrails': 'Webhooks check requests and responses.',
  'gateway.service.8.logs': 'Access logs are written.',
  'gateway.service.8.metrics': 'Metrics are exposed.',
  'gateway.service.8.traces': 'OpenTelemetry traces are exported.',
  'gateway.service.8.admin': 'An admin server dumps, traces, sets the log level and profiles.',
});

const topLevel = section('gateway.md#Top level', {
  'gateway.config.gateways': 'gateways.<name> describes a listener.',
  'gateway.config.gateways.port': 'port is the port to listen on.',
  'gateway.config.gateways.protocol': 'protocol may be HTTP.',
  'gateway.config.gateways.routes': 'routes is the list of routes of the listener.',
  'gateway.config.access-log-add': 'Named CEL fields are added to every access-log line.',
  'gateway.config.admin-addr': 'config.adminAddr is the host:port of the admin server.',
  'gateway.config.admin-addr.default': 'Without it the admin server is at 127.0.0.1:15000.',
  'gateway.config.logging.level':
    'config.logging.level is error, warn, info, debug or trace, and applies from startup.',
  'gateway.config.logging.format': 'config.logging.format is text, the default, or json.',
  'gateway.config.tracing.otlp': 'config.tracing.otlpEndpoint is the URL of an OTLP collector.',
  'gateway.config.tracing.sampling': 'config.tracing.randomSampling turns random sampling on.',
  'gateway.config.llm-models': 'llm.models lists the models of the simplified LLM mode.',
});

const route = section('gateway.md#Route', {
  'gateway.route.name': 'A route may have a name.',
  'gateway.route.backends': 'An entry of backends can be an MCP backend.',
  'gateway.route.targets': 'Each MCP target has a name and a stdio section.',
  'gateway.route.stdio.cmd': 'stdio.cmd is the command that starts the MCP server.',
  'gateway.route.stdio.args': 'stdio.args are the arguments of that command.',
  'gateway.route.policies': 'policies may hold mcpAuthentication, authorization, cors and extAuthz.',
});

const mcpAuthentication = section('gateway.md#mcpAuthentication policy', {
  'gateway.mcp-auth.mode': 'mode can be strict.',
  'gateway.mcp-auth.issuer': 'issuer is required and is a realm URL.',
  'gateway.mcp-auth.issuer.equal': 'issuer must equal the iss claim of a token.',
  'gateway.mcp-auth.audiences': 'audiences is required and lists accepted aud values.',
  'gateway.mcp-auth.provider': 'provider.idpx takes no fields and enables the behaviour of that provider.',
  'gateway.mcp-auth.jwks': 'jwks replaces the key-set location that idpx derives from issuer.',
  'gateway.mcp-auth.resource': 'resourceMetadata.resource is the URL of the protected resource.',
  'gateway.mcp-auth.scopes': 'resourceMetadata.scopesSupported is advertised.',
  'gateway.mcp-auth.bearer-methods': 'resourceMetadata.bearerMethodsSupported is advertised.',
});

const authorization = section('gateway.md#authorization policy', {
  'gateway.authorization.rules': 'rules are CEL expressions that give a boolean.',
  'gateway.authorization.claims': 'Rules read claims of the validated token as jwt.<claim>.',
  'gateway.authorization.roles': 'A rule can test whether a role is in a nested claim.',
  'gateway.authorization.place': 'The policy is configured next to mcpAuthentication.',
});

const cors = section('gateway.md#cors policy', {
  'gateway.cors.origins': 'allowOrigins lists origins; * allows any.',
  'gateway.cors.headers': 'allowHeaders lists request headers; * allows any.',
  'gateway.cors.expose': 'exposeHeaders lists response headers such as Mcp-Session-Id.',
});

const extAuthz = section('gateway.md#extAuthz policy', {
  'gateway.ext-authz.host': 'host is the address of the authorization service.',
  'gateway.ext-authz.host.unix': 'unix:<path> names a local socket.',
  'gateway.ext-authz.path': 'protocol.http.path is a CEL expression for the requested path and query.',
  'gateway.ext-authz.headers': 'protocol.http.addRequestHeaders gives headers of the call by CEL.',
  'gateway.ext-authz.headers.authority': 'A header name there may be :authority.',
  'gateway.ext-authz.metadata':
    'metadata extracts values from the reply, which are readable as extauthz.<name>.',
  'gateway.ext-authz.metadata.json': 'json(response.body) parses the reply.',
});

const llmModel = section('gateway.md#LLM model entry (`llm.models[]`)', {
  'gateway.llm.model.name': 'name is matched with the requested model; * matches any.',
  'gateway.llm.model.provider': 'provider is the kind of provider; oaiCompat speaks the OpenAI API.',
  'gateway.llm.model.api-key': 'params.apiKey is the key of the provider.',
  'gateway.llm.model.model': 'params.model, when given, is the model that is used.',
  'gateway.llm.model.transformation': 'transformation maps field names to CEL.',
  'gateway.llm.model.guardrails': 'guardrails.request and guardrails.response list webhooks.',
  'gateway.llm.model.webhook.host': 'webhook.target.host is the host:port of the webhook.',
  'gateway.llm.model.webhook.headers':
    'webhook.headers gives headers and :path, :method and :authority by CEL.',
});

const transformation = section('gateway.md#Transformation', {
  'gateway.llm.transformation.1': 'Expressions see the original request and set the named field.',
  'gateway.llm.transformation.2': 'A policy holds at most 64 transformations.',
  'gateway.llm.transformation.3': 'A transformation takes precedence over an override of the same field.',
  'gateway.llm.transformation.4': 'A field whose expression fails is removed silently.',
});

const webhookHeaders = section('gateway.md#Webhook guardrail headers', {
  'gateway.llm.webhook-headers.1': "Expressions see the client's request, not the webhook's.",
  'gateway.llm.webhook-headers.2': 'A header whose expression fails is omitted; the request continues.',
  'gateway.llm.webhook-headers.3': 'When the :path expression fails, the usual path is used.',
  'gateway.llm.webhook-headers.4': 'A literal :path is a quoted string inside the expression.',
  'gateway.llm.webhook-headers.5': 'llmRequest exists for request webhooks only.',
});

const cel = section('gateway.md#CEL variables', {
  'gateway.cel.request.headers': 'request.headers["name"] is the value of a request header.',
  'gateway.cel.request.path': 'request.path is the path of the request.',
  'gateway.cel.request.method': 'request.method is the HTTP method.',
  'gateway.cel.llm-request.max-tokens': 'llmRequest.max_tokens is what the client sent.',
  'gateway.cel.llm-request.model': 'llmRequest.model is the model that the client requested.',
  'gateway.cel.jwt': 'jwt.<claim> is a claim of the validated token.',
  'gateway.cel.source': 'source.address is the IP address of the client.',
  'gateway.cel.response-body': 'response.body is the body of the authorization reply.',
  'gateway.cel.extauthz': 'extauthz.<name> is metadata of the extAuthz policy.',
  'gateway.cel.cost': 'llm.cost and llm.costRates can be logged.',
  'gateway.cel.function.min': 'min(a, b) gives the smaller value.',
  'gateway.cel.function.json': 'json(x) parses a JSON text.',
  'gateway.cel.function.conditional': 'cond ? a : b selects a value.',
  'gateway.cel.function.in': 'in tests membership.',
});

const dataPlane = section('gateway.md#Data plane', {
  'gateway.http.mcp-post': 'POST /mcp takes a JSON-RPC 2.0 message.',
  'gateway.http.mcp-post.initialize': 'initialize carries protocolVersion, capabilities and clientInfo.',
  'gateway.http.mcp-post.headers': 'Requests are application/json, and accept names text/event-stream.',
  'gateway.http.mcp-post.authorization': 'An authorization header with a bearer token may be sent.',
  'gateway.http.mcp-post.response': 'The answer is 200 with content-type text/event-stream.',
  'gateway.http.mcp-post.session': 'The answer carries an mcp-session-id header.',
  'gateway.http.mcp-post.events': 'Events are called message; their data is a JSON-RPC result.',
  'gateway.http.mcp-get.not-acceptable': 'GET /mcp without the accept header gives 406.',
  'gateway.http.protected-resource': 'The protected-resource document is served under the MCP path.',
  'gateway.http.protected-resource.fields':
    'It has resource, mcp_protocol_version, resource_type, bearer_methods_supported and scopes_supported.',
  'gateway.http.protected-resource.servers': "Its authorization_servers name the gateway's MCP URL.",
  'gateway.http.authorization-server': 'Authorization-server metadata is served.',
  'gateway.http.authorization-server.registration': 'Its registration_endpoint is at the gateway.',
  'gateway.http.authorization-server.others': 'Its other endpoints are at the identity provider.',
  'gateway.http.registration': 'POST on client-registration forwards the request to the identity provider.',
  'gateway.http.registration.reply': 'The reply is the registered client with its client_id.',
  'gateway.http.chat': 'POST /v1/chat/completions takes model, messages, max_tokens and temperature.',
  'gateway.http.chat.response': 'The answer is a chat completion with choices and usage.',
  'gateway.http.llm-port': 'The simplified LLM mode listens on 4000 by default.',
  'gateway.http.mcp-port': 'Port 3000 is reserved for MCP.',
});

const outbound = section('gateway.md#Outbound calls made by the gateway', {
  'gateway.outbound.keys': 'With idpx and no jwks, keys come from the certs path below the issuer.',
  'gateway.outbound.metadata': 'Server metadata is read from the OpenID Connect discovery document.',
  'gateway.outbound.registration': 'Registration requests go to the identity provider.',
  'gateway.outbound.ext-authz': 'The authorization call has the configured path and headers.',
  'gateway.outbound.ext-authz.whois': 'A whois lookup by source address, with a fixed :authority, works.',
  'gateway.outbound.ext-authz.reply': 'Node.Name and UserProfile.LoginName can be taken from the reply.',
  'gateway.outbound.webhook': 'Webhooks are called by POST on /request and /response, or on :path.',
});

const idpEndpoints = section('gateway.md#Identity provider endpoints used by clients', {
  'gateway.idp.token': 'A token from the token endpoint of the identity provider is accepted.',
});

const admin = section('gateway.md#Admin server (default `127.0.0.1:15000`)', {
  'gateway.admin.config-dump': 'GET /config_dump gives the loaded configuration as JSON.',
  'gateway.admin.config-dump.parts':
    'It has binds, listeners, routes, backends, workloads, services and policies.',
  'gateway.admin.trace': '/debug/trace streams the next request as JSON events.',
  'gateway.admin.logging': '/logging reads and sets the log level.',
  'gateway.admin.logging.set': 'POST /logging?level= answers with a line that shows the current level.',
  'gateway.admin.memory': '/memory gives figures of the allocator and the process.',
  'gateway.admin.cpu': '/debug/pprof/profile gives a CPU profile on Linux.',
  'gateway.admin.cpu.query': 'seconds is 1 to 300, by default 10; frequency 1 to 1000 Hz, by default 100.',
  'gateway.admin.heap': '/debug/pprof/heap gives a heap profile, with allocation samples on Linux.',
  'gateway.admin.tasks': '/debug/tasks shows the running tasks as a tree.',
  'gateway.admin.quit': '/quitquitquit shuts down gracefully.',
  'gateway.admin.ui': '/ui is a user interface.',
  'gateway.agctl': 'agctl wraps the admin endpoints.',
  'gateway.agctl.config': 'agctl proxy config all renders a saved dump as YAML.',
  'gateway.agctl.trace': 'agctl proxy trace shows the next request in a terminal UI.',
  'gateway.agctl.trace.parts': 'The UI shows the route, the applied policies, the backend and the status.',
  'gateway.agctl.trace.raw': '--raw prints JSON Lines instead.',
  'gateway.admin.logging.modules': 'The log level can be set per module by directives.',
});

const authMcp = section('gateway.md#MCP authentication (bearer JWT)', {
  'gateway.auth.mcp.1': 'In strict mode a request without a valid token is rejected.',
  'gateway.auth.mcp.2': 'iss must equal issuer, and aud must contain one of audiences.',
  'gateway.auth.mcp.3': 'With idpx, signature keys come from the certs path below the issuer.',
  'gateway.auth.mcp.3.jwks': 'jwks overrides that location.',
  'gateway.auth.mcp.4': 'A missing token gives 401 and the www-authenticate header with resource_metadata.',
  'gateway.auth.mcp.5': 'Every authorization rule is evaluated after authentication.',
  'gateway.auth.mcp.5.refused': 'A rule that is not true gives 403.',
  'gateway.auth.mcp.6': 'Server metadata comes from the OpenID Connect discovery document.',
  'gateway.auth.mcp.6.rfc8414':
    'Newer providers also serve RFC 8414 metadata, with the realm after the path.',
  'gateway.auth.mcp.7': 'The audience is the one that the realm issues; resource indicators are not used.',
});

const authIdp = section('gateway.md#Identity provider prerequisites for the flow', {
  'gateway.auth.idp.realm': 'The issuer URL contains the name of the realm.',
  'gateway.auth.idp.transport': 'A provider that requires HTTPS answers 403; the reason is logged.',
  'gateway.auth.idp.client': 'Public clients with PKCE and their own redirect URIs can log in.',
  'gateway.auth.idp.audience': 'A token whose aud is only account is rejected.',
  'gateway.auth.idp.users': 'With an incomplete user profile, the token endpoint answers invalid_grant.',
  'gateway.auth.idp.registration':
    'A rejection by the Trusted Hosts policy reaches the client as 403 with its text.',
  'gateway.auth.idp.browser': 'Registration through the gateway does not depend on the allowed web origins.',
  'gateway.auth.idp.host': 'A token requested under another host name than that of issuer is rejected.',
});

const authExt = section('gateway.md#External authorization (extAuthz)', {
  'gateway.auth.ext.1': 'For every request, a call with the source address of the client is made.',
  'gateway.auth.ext.2': 'If the reply allows it, the request is forwarded to the backend.',
  'gateway.auth.ext.2.denied': 'A denial gives 403.',
  'gateway.auth.ext.2.no-identity': 'A client without a mesh identity, as from localhost, is denied.',
  'gateway.auth.ext.3': 'Addresses such as 100.x.x.x are forwarded unchanged.',
  'gateway.auth.ext.4': 'Sockets under /run and /var/run can be used.',
  'gateway.auth.ext.5': 'Log fields mapped to extauthz.<name> carry the identity on each line.',
});

const authProvider = section('gateway.md#Provider credentials', {
  'gateway.auth.provider': 'params.apiKey is sent to the LLM provider.',
});

const accessLog = section('gateway.md#Access log (stdout, one line per request, level info)', {
  'gateway.log.line': 'Each request gives one line on stdout, at level info.',
  'gateway.log.gateway': 'Lines name the gateway, the listener and the route.',
  'gateway.log.endpoint': 'Lines name the endpoint that was called.',
  'gateway.log.source': 'src.addr is the address of the client.',
  'gateway.log.http':
    'http.method, http.host, http.path, http.version and http.status describe the exchange.',
  'gateway.log.protocol': 'protocol is that of the backend.',
  'gateway.log.gen-ai': 'LLM lines have gen_ai operation, provider, models and token counts.',
  'gateway.log.duration': 'duration is in milliseconds.',
  'gateway.log.error': 'A failed request has its error.',
  'gateway.log.added': 'Configured fields come last.',
  'gateway.log.cost': 'With a cost catalog, LLM lines have the total cost in USD.',
});

const metrics = section('gateway.md#Metrics', {
  'gateway.metrics.token-usage': 'A histogram counts tokens by type, operation, system and models.',
  'gateway.metrics.cost-lookups': 'A counter counts catalog lookups by status, provider and model.',
});

const traces = section('gateway.md#Traces', {
  'gateway.traces.export': 'With an OTLP endpoint, spans are exported.',
  'gateway.traces.cost': 'With a cost catalog, the request span has cost attributes.',
});

const errors = section('gateway.md#Errors', {
  'gateway.errors.no-token': 'No token in strict mode: 401, the header, and the JSON body of the table.',
  'gateway.errors.rule': 'A failing authorization rule: 403.',
  'gateway.errors.ext-authz': 'A denial: 403 with the text of the table.',
  'gateway.errors.not-acceptable':
    'A POST whose accept lacks text/event-stream: 406 with the text of the table.',
  'gateway.errors.rate-limit': 'A rate-limited LLM request: 429, and the error in the access log.',
  'gateway.errors.profile': 'A CPU profile where it is not supported: 404.',
  'gateway.errors.transformation': 'A failing transformation: the field is removed, without an error.',
  'gateway.errors.guardrail-header': 'A failing guardrail header: it is omitted.',
});

const limits = section('gateway.md#Limits', {
  'gateway.limits.transformations': '64 transformations in a policy.',
  'gateway.limits.profile-duration': 'A CPU profile takes 1 to 300 s, by default 10.',
  'gateway.limits.profile-frequency': 'It samples at 1 to 1000 Hz, by default 100.',
  'gateway.limits.admin-address': 'The admin address is 127.0.0.1:15000 by default.',
  'gateway.limits.llm-port': 'The simplified LLM listener is on 4000.',
  'gateway.limits.mcp-port': '3000 is reserved for MCP.',
});

const versioning = section('gateway.md#Versioning', {
  'gateway.versioning.1.metadata': 'mcp_protocol_version is a string such as 2025-06-18.',
  'gateway.versioning.1.client': 'A client may request protocol version 2024-11-05.',
  'gateway.versioning.2': 'The chat path begins with /v1.',
});

const memoryService = section('memory-adapter.md#What the service does', {
  'memory.service.1': 'The adapter speaks MCP at /mcp and reports its health at /health.',
  'memory.service.2': 'It has the four tools, each with its REST call on the backend.',
  'memory.service.3': 'The gateway (8080) calls the adapter (8080), which calls the backend (3006).',
  'memory.service.4': 'No session id is generated.',
  'memory.service.4.instance': 'Each POST has its own MCP server, which is destroyed when the response ends.',
  'memory.service.5': 'At every start the backend reads all .md and .mdx files of its docs folder.',
  'memory.service.5.idempotent': 'Documents whose content hash is known are not embedded again.',
  'memory.service.5.resync': 'POST /api/memory/ingest/docs reads them again.',
  'memory.service.6': 'A dashboard shows the graph, a search playground with scores, and chat by session.',
  'memory.service.6.resync': 'The dashboard has a button that reads the documents again.',
});

const memoryConfig = section('memory-adapter.md#Configuration', {
  'memory.config.url': 'MEMORY_API_URL is the backend, by default http://memory-api:3006.',
  'memory.config.port': 'PORT is the port of the adapter, by default 8080.',
  'memory.config.base-url': '/api/memory is appended to the base URL unless it already ends with it.',
});

const chatHistory = section('memory-adapter.md#Collection `chat_history` (episodic memory)', {
  'memory.chat.session-id': 'sessionId, also called conversationId, is the thread.',
  'memory.chat.agent-id': 'agentId is the agent that produced the turn.',
  'memory.chat.role': 'role is user, assistant or system.',
  'memory.chat.content': 'content is the text.',
  'memory.chat.created-at': 'createdAt is when the turn was stored.',
});

const entities = section('memory-adapter.md#Collection `entities` (semantic memory)', {
  'memory.entity.name': 'name is the canonical name or title.',
  'memory.entity.type': 'type is workspace, doc_file, doc_chunk or chat_message.',
  'memory.entity.content': 'content is a summary or the whole text.',
  'memory.entity.embedding': 'embedding has 128 floats and serves similarity search.',
  'memory.entity.metadata': 'metadata holds any keys, such as source and path.',
});

const relations = section('memory-adapter.md#Collection `relations` (graph layer)', {
  'memory.relation.edge': 'Relations are directed edges with a weight, fromId to toId.',
  'memory.relation.type': 'relationType is BELONGS_TO, REFERENCES or DEPENDS_ON.',
  'memory.relation.weight': 'weight is the strength of the relation.',
});

const memoryEndpoints = section('memory-adapter.md#Endpoints', {
  'memory.http.mcp': 'POST /mcp gives a response for each request.',
  'memory.http.health': 'GET /health gives status healthy and the name of the service.',
});

const memoryTools = section('memory-adapter.md#Tools', {
  'memory.tool.search': 'search_knowledge searches all documents by similarity, by POST on search.',
  'memory.tool.search.query': 'query is required.',
  'memory.tool.search.limit': 'limit bounds the results, by default 5.',
  'memory.tool.search.min-score': 'Results below minScore, by default 0.7, are left out.',
  'memory.tool.store': 'store_episodic stores one turn, by POST on chat.',
  'memory.tool.store.parameters': 'sessionId, role and content are required.',
  'memory.tool.graph': 'query_graph walks from a named entity, by GET on graph.',
  'memory.tool.graph.entity': 'entityId, an id or a canonical name, is required.',
  'memory.tool.graph.depth': 'maxDepth bounds the hops, by default 2.',
  'memory.tool.ingest': 'ingest_document chunks, embeds and indexes, by POST on ingest/docs.',
  'memory.tool.ingest.resync': 'It also makes the backend read all documents again.',
  'memory.tool.ingest.parameters': 'title and content are required.',
  'memory.tool.ingest.source': 'source is kept in the metadata.',
});

const memoryLimits = section('memory-adapter.md#Limits', {
  'memory.limits': 'Defaults are limit 5, minScore 0.7 and maxDepth 2; embeddings have 128 dimensions.',
});

export const requirements = {
  ...service,
  ...topLevel,
  ...route,
  ...mcpAuthentication,
  ...authorization,
  ...cors,
  ...extAuthz,
  ...llmModel,
  ...transformation,
  ...webhookHeaders,
  ...cel,
  ...dataPlane,
  ...outbound,
  ...idpEndpoints,
  ...admin,
  ...authMcp,
  ...authIdp,
  ...authExt,
  ...authProvider,
  ...accessLog,
  ...metrics,
  ...traces,
  ...errors,
  ...limits,
  ...versioning,
  ...memoryService,
  ...memoryConfig,
  ...chatHistory,
  ...entities,
  ...relations,
  ...memoryEndpoints,
  ...memoryTools,
  ...memoryLimits,
} satisfies Record<string, Requirement>;

export type RequirementId = keyof typeof requirements;
