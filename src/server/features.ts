import {
  backendVariable,
  proxyVariable,
  requestVariable,
  responseVariable,
  sourceVariable,
} from './expressions/request-variables.ts';
import { requestScope } from './expressions/scopes.ts';
import { registerVariables } from './expressions/variable.ts';
import type { PolicyKind } from './kernel/policy.ts';
import { llm } from './llm/backend.ts';
import {
  llmRequestScope,
  llmRequestVariable,
  llmResponseScope,
  llmVariable,
  providerReplyScope,
} from './llm/variables.ts';
import { mcpAuthorization } from './mcp/authorization-policy.ts';
import { mcp } from './mcp/backend.ts';
import { mcpAuthorizationScope, mcpVariable } from './mcp/variables.ts';
import { logScope, samplingScope, traceFilterScope } from './observe/scopes.ts';
import { apiKey, apiKeyVariable } from './policies/api-key.ts';
import { authorization } from './policies/authorization.ts';
import { cors } from './policies/cors.ts';
import { csrf } from './policies/csrf.ts';
import { directResponse } from './policies/direct-response.ts';
import { extAuthz } from './policies/ext-authz/index.ts';
import { authorizationReplyScope, extAuthzVariable } from './policies/ext-authz/scope.ts';
import { requestHeaderModifier, responseHeaderModifier } from './policies/header-modifiers.ts';
import { localRateLimit } from './policies/local-rate-limit.ts';
import { jwtVariable, mcpAuthentication } from './policies/mcp-authentication/index.ts';
import { requestRedirect } from './policies/request-redirect.ts';
import { timeout } from './policies/timeout.ts';
import { urlRewrite } from './policies/url-rewrite.ts';
import { host } from './transport/host-backend.ts';

/**
 * Every policy, in the order of the request phase; the response phase is the reverse. Adding a policy is its
 * file and one line here.
 */
export const policyKinds = [
  timeout, // bounds everything below
  cors, // preflights carry no credentials, and a browser must be able to read a refusal
  responseHeaderModifier, // acts on responses only: entered early, so that refusals are changed too
  mcpAuthentication, // who is it: sets jwt.*; answers the discovery paths before anything else is asked of a client
  apiKey, // who is it: sets apiKey.*
  extAuthz, // may send what is known so far; sets extauthz.*, which rules may read
  authorization, // rules on the request and everything above
  csrf, // a browser's word on where a request comes from
  localRateLimit, // only requests that may pass use up a limit
  mcpAuthorization, // rules on single items, asked by the MCP backend
  requestHeaderModifier, // after all rules, so that they see what the client sent
  urlRewrite, // as above; rules see the host that the client asked for
  requestRedirect, // in place of a backend
  directResponse, // in place of a backend
] as const satisfies readonly PolicyKind[];

/** Every kind of backend; each entry of `backends[]` has exactly one of these keys. */
export const backendKinds = [mcp, llm, host] as const;

/** Every kind of place that takes expressions, in the order of agctl-expressions(7). */
export const expressionScopes = [
  requestScope,
  samplingScope,
  authorizationReplyScope,
  mcpAuthorizationScope,
  llmRequestScope,
  providerReplyScope,
  llmResponseScope,
  traceFilterScope,
  logScope,
] as const;

// In the order of agctl-expressions(7). Expressions may use a variable once it is registered here.
registerVariables([
  requestVariable,
  sourceVariable,
  jwtVariable,
  apiKeyVariable,
  extAuthzVariable,
  proxyVariable,
  backendVariable,
  responseVariable,
  mcpVariable,
  llmVariable,
  llmRequestVariable,
]);
