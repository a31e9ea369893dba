import type { PolicyKind } from '../kernel/policy.ts';
import { mcpAuthorization } from '../mcp/authorization-policy.ts';
import { apiKey } from './api-key.ts';
import { authorization } from './authorization.ts';
import { cors } from './cors.ts';
import { csrf } from './csrf.ts';
import { directResponse } from './direct-response.ts';
import { extAuthz } from './ext-authz/index.ts';
import { requestHeaderModifier, responseHeaderModifier } from './header-modifiers.ts';
import { localRateLimit } from './local-rate-limit.ts';
import { mcpAuthentication } from './mcp-authentication/index.ts';
import { timeout } from './timeout.ts';
import { urlRewrite } from './url-rewrite.ts';

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
  directResponse, // in place of a backend
] as const satisfies readonly PolicyKind[];
