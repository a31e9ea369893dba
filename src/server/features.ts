import './config/reading/acyclic-values.ts';
import { auditSchema } from './audit/schema.ts';
import { aws } from './backends/agent-core.ts';
import { dynamic, dynamicRequestExpressions } from './backends/dynamic.ts';
import { service } from './backends/service.ts';
import { budgetsSchema } from './budgets/schema.ts';
import {
  destinationVariable,
  environmentVariable,
  sourceVariable,
} from './expressions/connection-variables.ts';
import {
  backendVariable,
  proxyVariable,
  requestVariable,
  responseVariable,
} from './expressions/request-variables.ts';
import { connectionScope, type DocumentedScope, networkScope, requestScope } from './expressions/scopes.ts';
import { registerVariables } from './expressions/variable.ts';
import type { BackendKind } from './kernel/backend.ts';
import type { DatabaseSchema } from './kernel/database.ts';
import type { PolicyKind, PolicyPlace } from './kernel/policy.ts';
import { ai } from './llm/ai-backend.ts';
import { ai as aiPolicyKind } from './llm/ai-policy.ts';
import { llm } from './llm/backend.ts';
import { modelRequestExpressions } from './llm/models/model.ts';
import {
  llmRequestScope,
  llmRequestVariable,
  llmResponseScope,
  llmVariable,
  providerReplyScope,
} from './llm/variables.ts';
import { mcpAuthorization } from './mcp/authorization-policy.ts';
import { mcp } from './mcp/backend.ts';
import { bundleRequestExpressions } from './mcp/bundles/bundle-config.ts';
import { extMcpVariable, mcpGuardrailsVariable } from './mcp/guardrails/ext-mcp-variable.ts';
import { mcpGuardrails } from './mcp/guardrails/policy.ts';
import { mcpAuthorizationScope, mcpVariable } from './mcp/variables.ts';
import { logScope, samplingScope, traceFilterScope } from './observe/scopes.ts';
import { a2a } from './policies/a2a.ts';
import { apiKey, apiKeyVariable } from './policies/api-key.ts';
import { authorization } from './policies/authorization.ts';
import { backendAuth } from './policies/backend-auth.ts';
import { http } from './policies/backend-http.ts';
import { tcp } from './policies/backend-tcp.ts';
import { backendTLS } from './policies/backend-tls.ts';
import { basicAuth, basicAuthVariable } from './policies/basic-auth/index.ts';
import { budgets } from './policies/budgets.ts';
import { buffer } from './policies/buffer.ts';
import { cors } from './policies/cors.ts';
import { csrf } from './policies/csrf.ts';
import { delay } from './policies/delay.ts';
import { directResponse } from './policies/direct-response.ts';
import { extAuthz } from './policies/ext-authz/index.ts';
import { authorizationReplyScope, extAuthzVariable } from './policies/ext-authz/plan.ts';
import { extProcVariable } from './policies/ext-proc/context.ts';
import { extProc } from './policies/ext-proc/index.ts';
import { requestHeaderModifier, responseHeaderModifier } from './policies/header-modifiers.ts';
import { inferenceRouting } from './policies/inference-routing/index.ts';
import { jwtAuth } from './policies/jwt-auth.ts';
import { localRateLimit } from './policies/local-rate-limit.ts';
import { jwtVariable, mcpAuthentication } from './policies/mcp-authentication/index.ts';
import { mcpSignIn } from './policies/mcp-sign-in.ts';
import { modules } from './policies/modules/index.ts';
import { oidc } from './policies/oidc/index.ts';
import { remoteRateLimit, tokenCostScope } from './policies/remote-rate-limit.ts';
import { requestMirror } from './policies/request-mirror.ts';
import { requestRedirect } from './policies/request-redirect.ts';
import { retry, retryScope } from './policies/retry.ts';
import { timeout } from './policies/timeout.ts';
import {
  metadataVariable,
  responseTransformationScope,
  transformations,
} from './policies/transformations.ts';
import { urlRewrite } from './policies/url-rewrite.ts';
import { recordSchema } from './record/schema.ts';
import { host } from './transport/host-backend.ts';
import { ui } from './transport/ui-backend.ts';
import { userTokensSchema } from './user-tokens/schema.ts';

/**
 * All policies, in the order of the request phase; the response phase runs in reverse order. To add a policy, add its
 * file and one line here.
 */
export const policyKinds = [
  timeout, // limits everything below
  cors, // preflight requests have no credentials, and browsers must be able to read error responses
  responseHeaderModifier, // changes responses only; entered early, so that error responses are changed too
  mcpAuthentication, // sets jwt.*; answers the discovery paths, which need no credentials
  oidc, // sets jwt.* too; answers browsers that are not signed in, and their return
  jwtAuth, // likewise
  basicAuth, // sets basicAuth.*
  apiKey, // sets apiKey.*
  extAuthz, // can send the variables above; sets extauthz.*, which rules can read
  authorization, // rules can read the request and everything above
  csrf, // checks the Origin that browsers send
  localRateLimit, // only allowed requests count towards a limit
  remoteRateLimit, // not asked about requests that a local limit rejects
  budgets, // likewise; the LLM backend reserves and charges
  mcpAuthorization, // rules for single items, which the MCP backend evaluates
  mcpGuardrails, // checks of messages, which the MCP backend runs after the rules
  buffer, // only allowed requests occupy memory
  extProc, // likewise; sets extproc.*, which what follows reads
  modules, // likewise; before what the configuration says of headers and calls, which can correct it
  transformations, // after all rules too; its metadata is read by what follows
  requestHeaderModifier, // after all rules, which therefore see what the client sent
  aiPolicyKind, // changes and checks of model calls, which the LLM backend runs
  backendTLS, // how the backend is connected to
  tcp, // likewise
  http, // likewise; after `timeout` of the route, which it replaces
  inferenceRouting, // the picker sees the request as the backend gets it, without its credential
  backendAuth, // the credential for the backend
  urlRewrite, // likewise: rules see the client's host
  retry, // sends what the policies above have made of the request
  requestRedirect, // instead of a backend
  mcpSignIn, // instead of a backend; after all policies that authenticate its users
  delay, // rejected and redirected requests are not delayed
  directResponse, // instead of a backend
  a2a, // sees the path that the backend gets
  requestMirror, // copies what the backend receives
] as const satisfies readonly PolicyKind[];

/** The same, for code that treats them all alike: their settings have unknown types. */
export const anyPolicyKinds: readonly PolicyKind[] = policyKinds;

/** The policies that can be configured at a place. */
export function policyKindsAt(place: PolicyPlace): (typeof policyKinds)[number][] {
  return policyKinds.filter(({ places = ['route'] }: PolicyKind) => places.includes(place));
}

/** All kinds of backends. Each entry of `backends[]` has exactly one of these keys. To add one, add its file and one line here. */
export const backendKinds = [mcp, llm, ai, host, dynamic, aws, service] as const;

/** The tables of all features in the database of `config.database`. */
export const databaseSchemas: readonly DatabaseSchema[] = [
  recordSchema,
  budgetsSchema,
  userTokensSchema,
  auditSchema,
];

/** Kinds of backends that sections stand for, and that configurations cannot name. */
const sectionBackendKinds = [ui] as const;

/** All of them, for code that treats them alike: their settings have unknown types. */
export const anyBackendKinds: readonly BackendKind[] = [...backendKinds, ...sectionBackendKinds];

/** All scopes of expressions, in the order of agctl-expressions(7). */
export const expressionScopes: readonly DocumentedScope[] = [
  networkScope,
  connectionScope,
  {
    ...requestScope,
    keys: [
      ...policyKinds.flatMap(requestKeys),
      ...modelRequestExpressions,
      ...dynamicRequestExpressions,
      ...bundleRequestExpressions,
      'config.adminRoles.claim',
    ],
  },
  samplingScope,
  authorizationReplyScope,
  responseTransformationScope,
  retryScope,
  tokenCostScope,
  mcpAuthorizationScope,
  llmRequestScope,
  providerReplyScope,
  llmResponseScope,
  traceFilterScope,
  logScope,
];

function requestKeys({ key, requestExpressions = [], conditional = false }: PolicyKind): string[] {
  const paths = [...requestExpressions, ...(conditional ? ['conditional[].condition'] : [])];
  return paths.map((path) => `policies.${key}${path.startsWith('[') ? '' : '.'}${path}`);
}

// In the order of agctl-expressions(7).
registerVariables([
  requestVariable,
  sourceVariable,
  destinationVariable,
  environmentVariable,
  jwtVariable,
  basicAuthVariable,
  apiKeyVariable,
  extAuthzVariable,
  extProcVariable,
  metadataVariable,
  proxyVariable,
  backendVariable,
  responseVariable,
  mcpVariable,
  extMcpVariable,
  mcpGuardrailsVariable,
  llmVariable,
  llmRequestVariable,
]);
