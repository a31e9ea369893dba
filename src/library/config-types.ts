// Generated from the schema of the configuration: npm run gen

/**
 * How the gateway connects to the service.
 */
export type Policies = {
  backendTLS?: BackendTLS;
  backendAuth?: BackendAuth;
  /**
   * Calls of the service.
   */
  http?: {
    /**
     * Maximum time of a call.
     */
    requestTimeout?: '30s' | (string & {});
  } | null;
  tcp?: Tcp;
} | null;
/**
 * TLS of the connections to the server. Files are read when the configuration is loaded.
 */
export type BackendTLS = {
  /**
   * File with the certificates (PEM) of the authorities that may issue the certificate of the server, instead of the public ones.
   */
  root?: string;
  /**
   * File with the client certificate (PEM). `key` must be set too.
   */
  cert?: string;
  /**
   * File with the private key (PEM) of the client certificate.
   */
  key?: string;
  /**
   * Name that the certificate must be for, also sent as SNI. Default: the host of the address.
   */
  hostname?: string;
  /**
   * Accept any certificate. For tests only: anyone on the network can pose as the server.
   */
  insecure?: boolean | string;
  /**
   * Accept a certificate for another host name, if a trusted authority issued it.
   */
  insecureHost?: boolean | string;
} | null;
/**
 * Credential for the service.
 */
export type BackendAuth = {
  /**
   * Bearer token, or `{ file: … }` with a file that contains it. Also in `value`: `{ value: … }`.
   */
  key:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      }
    | Key;
} | null;
/**
 * Connections to the service.
 */
export type Tcp = {
  /**
   * Maximum time to open a connection.
   */
  connectTimeout?: '30s' | (string & {});
  /**
   * Keepalive probes, with the settings of the operating system.
   */
  keepalives?: {} | null;
} | null;
/**
 * Whether a request without a trace (`traceparent`) starts one: a boolean, a ratio from 0 to 1, or a CEL expression.
 */
export type RandomSampling = (boolean | string) | (number | string) | string;
/**
 * Whether a request that continues a client's trace (`traceparent`) is recorded: a boolean, a ratio from 0 to 1, or a CEL expression.
 */
export type ClientSampling = (boolean | string) | (number | string) | string;
export type Rules2 =
  | string
  | {
      /**
       * Allows the request if true, unless a `deny` or `require` rule rejects it.
       */
      allow: string;
    }
  | {
      /**
       * Rejects the request if true, or if it cannot be evaluated.
       */
      deny: string;
    }
  | {
      /**
       * Rejects the request unless true.
       */
      require: string;
    };
/**
 * TLS of the connections of clients. Paths are relative to the configuration file, otherwise to the working folder. Files are read again when they change.
 */
export type Tls = {
  /**
   * `dynamicCa`: `cert` and `key` are those of an authority, with which a certificate is issued for each name that a client asks for (SNI). Its clients must trust the authority.
   */
  mode?: 'static' | 'dynamicCa';
  /**
   * File with the certificate of the gateway (PEM), followed by those of intermediate authorities.
   */
  cert: string;
  /**
   * File with the private key of the certificate (PEM), not encrypted.
   */
  key: string;
  /**
   * File with the certificates (PEM) of the authorities that issue certificates of clients. If set, every client needs one.
   */
  root?: string;
  /**
   * Cipher suites that clients may use, such as `TLS_AES_256_GCM_SHA384`, the preferred one first.
   *
   * @minItems 1
   */
  cipherSuites?: string[];
  /**
   * Oldest TLS version that clients may use; `TLS_V1_2` by default.
   */
  minTLSVersion?: 'TLS_V1_2' | 'TLS_V1_3';
  /**
   * Newest TLS version that clients may use.
   */
  maxTLSVersion?: 'TLS_V1_2' | 'TLS_V1_3';
  /**
   * Key exchange groups that clients may use, the preferred one first.
   *
   * @minItems 1
   */
  keyExchangeGroups?: ('X25519' | 'P-256' | 'P-384' | 'X25519_MLKEM768')[];
} | null;
/**
 * Answers preflights and lets browser pages of other origins read responses, including error responses.
 */
export type Cors = {
  /**
   * Origins that may read responses: exact, `https://*.example.com`, or `*` for any.
   */
  allowOrigins?: string[];
  /**
   * Methods that a preflight allows. `*` allows the requested one.
   */
  allowMethods?: string[];
  /**
   * Request headers that a preflight allows. `*` allows the requested ones.
   */
  allowHeaders?: string[];
  /**
   * Response headers that pages may read, such as `Mcp-Session-Id`.
   */
  exposeHeaders?: string[];
  /**
   * Whether responses to requests with cookies or other credentials may be read.
   */
  allowCredentials?: boolean | string;
  /**
   * How long browsers may cache the response to a preflight; the browser's default if absent.
   */
  maxAge?: '30s' | (string & {});
} | null;
/**
 * Signs browsers in at an OpenID provider, with a session in encrypted cookies.
 */
export type Oidc = {
  /**
   * Issuer: must equal that of the metadata and the `iss` claim of ID tokens.
   */
  issuer: string;
  /**
   * Metadata of the provider: inline JSON, `url` or `file`. Default: `/.well-known/openid-configuration` of the issuer.
   */
  discovery?:
    | string
    | {
        /**
         * URL of the key set.
         */
        url: string;
      }
    | {
        /**
         * File with the key set.
         */
        file: string;
      };
  /**
   * Where browsers sign in. With `tokenEndpoint` and `jwks`, no metadata is read.
   */
  authorizationEndpoint?: string | null;
  /**
   * Where the gateway redeems codes.
   */
  tokenEndpoint?: string | null;
  /**
   * How the gateway authenticates at `tokenEndpoint`; `clientSecretBasic` by default.
   */
  tokenEndpointAuth?: ('clientSecretBasic' | 'clientSecretPost') | null;
  /**
   * Keys of ID tokens: inline JSON, `url` or `file`.
   */
  jwks?:
    | string
    | {
        /**
         * URL of the key set.
         */
        url: string;
      }
    | {
        /**
         * File with the key set.
         */
        file: string;
      };
  /**
   * Id of the client at the provider.
   */
  clientId: string;
  /**
   * Secret of the client, or `{ file: … }`.
   */
  clientSecret:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
  /**
   * URL of the gateway that browsers return to, such as `https://example.com/oauth/callback`. Its path belongs to the policy.
   */
  redirectURI: string;
  /**
   * Scopes to request besides `openid`. Many providers issue refresh tokens for `offline_access` only.
   */
  scopes?: string[];
  /**
   * Where the provider signs browsers out, if no metadata is read. Used by `logout`.
   */
  endSessionEndpoint?: string | null;
  /**
   * Signs browsers out: here, and at the provider if its metadata has `end_session_endpoint`.
   */
  logout?: {
    /**
     * Path that ends the session of the browser that opens it. It belongs to the policy.
     */
    path: string;
    /**
     * Where browsers go after they were signed out. The provider must know it (`post_logout_redirect_uri`). Default: a page of the provider, or a short text.
     */
    redirectURI?: string;
  } | null;
} | null;
/**
 * Validates tokens (JWT) of identity providers, and sets `jwt`.
 */
export type JwtAuth = {
  /**
   * `strict`: a valid token is required. `optional`: no token or a valid one. `permissive`: requests are never rejected; claims are set if the token is valid.
   */
  mode?: 'strict' | 'optional' | 'permissive';
  location?: Location;
  /**
   * Several accepted issuers, instead of `issuer` and the keys beside it.
   *
   * @minItems 1
   */
  providers?: {
    /**
     * Issuer of the tokens: must equal their `iss` claim.
     */
    issuer: string;
    /**
     * Accepted audiences: `aud` of a token must contain one of them. Without any, `aud` is not checked.
     */
    audiences?: string[] | null;
    jwks?: Jwks;
    jwtValidationOptions?: JwtValidationOptions;
  }[];
  /**
   * Issuer of the tokens: must equal their `iss` claim.
   */
  issuer?: string;
  /**
   * Accepted audiences: `aud` of a token must contain one of them. Without any, `aud` is not checked.
   */
  audiences?: string[] | null;
  jwks?: Jwks;
  jwtValidationOptions?: JwtValidationOptions;
} | null;
/**
 * Location of the token in the request; `Authorization: Bearer` by default.
 */
export type Location = {
  header?: Header;
  /**
   * A query parameter.
   */
  queryParameter?: {
    /**
     * Name of the parameter.
     */
    name: string;
  } | null;
  /**
   * A cookie.
   */
  cookie?: {
    /**
     * Name of the cookie.
     */
    name: string;
  } | null;
  /**
   * CEL expression for the credential.
   */
  expression?: string;
} | null;
/**
 * A header.
 */
export type Header = {
  /**
   * Header that contains the credential.
   */
  name?: string;
  /**
   * Text before the credential, such as `Bearer `. Case-insensitive.
   */
  prefix?: string;
} | null;
/**
 * Signing keys: inline JSON, `url` or `file`. Default: `jwks_uri` of the metadata of `issuer`.
 */
export type Jwks =
  | string
  | {
      /**
       * URL of the key set.
       */
      url: string;
    }
  | {
      /**
       * File with the key set.
       */
      file: string;
    };
/**
 * Validation of tokens.
 */
export type JwtValidationOptions = {
  /**
   * Claims that a token must have, besides `iss`.
   */
  requiredClaims?: ('exp' | 'nbf' | 'aud' | 'iss' | 'sub')[];
} | null;
/**
 * Authenticates callers by user name and password (RFC 7617).
 */
export type BasicAuth = {
  /**
   * Users and hashes of their passwords, as written by `htpasswd`: inline (with `$$` for each `$`), or `file`.
   */
  htpasswd:
    | string
    | {
        /**
         * File with the users, read again when it changes.
         */
        file: string;
      };
  /**
   * Realm that browsers show when they ask for a password; default: `Restricted`.
   */
  realm?: string | null;
  /**
   * `strict`: a valid user is required. `optional`: no credentials or valid ones.
   */
  mode?: 'strict' | 'optional';
  /**
   * Location of the credentials in the request; `Authorization: Basic` by default.
   */
  authorizationLocation?: {
    header?: Header;
    /**
     * A query parameter.
     */
    queryParameter?: {
      /**
       * Name of the parameter.
       */
      name: string;
    } | null;
    /**
     * A cookie.
     */
    cookie?: {
      /**
       * Name of the cookie.
       */
      name: string;
    } | null;
    /**
     * CEL expression for the credential.
     */
    expression?: string;
  } | null;
} | null;
/**
 * Authenticates callers by a shared key.
 */
export type ApiKey = {
  /**
   * Accepted keys.
   */
  keys?: {
    /**
     * The key itself, or `{ file: … }` with one key, or its hash as in `keyHash`, on each line. Empty lines and those that begin with `#` do not count.
     */
    key?:
      | string
      | {
          /**
           * File with the text. It is read again when it changes.
           */
          file: string;
        };
    /**
     * SHA-256 hash of the key (`sha256:` and hexadecimal digits), so that the file does not contain the key.
     */
    keyHash?: string;
    /**
     * Values that expressions read as `apiKey.<name>`.
     */
    metadata?: {
      [k: string]: _Schema0;
    } | null;
    /**
     * LLM models that this key may use; all by default.
     */
    allowedModels?: string[];
  }[];
  /**
   * Accepts also the keys of `agctl keys create`, which are kept in `config.database`. Expressions read their metadata as `apiKey.<name>`, and `apiKey.name`.
   */
  virtualKeys?: {
    /**
     * What happens to calls of keys with budgets that cannot be counted, because the database fails or the price of the model is unknown: `failClosed` refuses them, `failOpen` lets them through.
     */
    failureMode?: 'failClosed' | 'failOpen';
  } | null;
  /**
   * `strict`: a valid key is required. `optional`: no key or a valid one. `permissive`: requests are never rejected.
   */
  mode?: 'strict' | 'optional' | 'permissive';
  /**
   * Location of the key in the request. Default: `Authorization: Bearer`; on routes with models also `x-api-key`, `x-goog-api-key` and `api-key`, which official clients send.
   */
  location?: {
    header?: Header;
    /**
     * A query parameter.
     */
    queryParameter?: {
      /**
       * Name of the parameter.
       */
      name: string;
    } | null;
    /**
     * A cookie.
     */
    cookie?: {
      /**
       * Name of the cookie.
       */
      name: string;
    } | null;
    /**
     * CEL expression for the credential.
     */
    expression?: string;
  } | null;
} | null;
export type _Schema0 =
  | string
  | (number | string)
  | (boolean | string)
  | null
  | _Schema0[]
  | {
      [k: string]: _Schema0;
    };
/**
 * Asks an external service whether a request is allowed.
 */
export type ExtAuthz =
  | {
      /**
       * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
       */
      host?: string;
      /**
       * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
       */
      backend?: string;
      protocol?: Protocol;
      /**
       * Values from the service's response (`response`), as CEL expressions, which other expressions read as `extauthz.<name>`. A value whose expression fails is omitted.
       */
      metadata?: {
        [k: string]: string;
      };
      /**
       * Headers of the request that are sent to the service. By default, `authorization` over HTTP and all over gRPC.
       */
      includeRequestHeaders?: (string | (':method' | ':path' | ':authority' | ':scheme'))[];
      includeRequestBody?: IncludeRequestBody;
      cache?: Cache;
      policies?: Policies2;
      failureMode?: FailureMode;
      /**
       * Response to a denied request: 403 with a fixed text, or the service's response. By default, `fixed` over HTTP and `passthrough` over gRPC.
       */
      denyResponse?: 'fixed' | 'passthrough';
    }
  | {
      /**
       * Entries, of which the first whose condition is true applies.
       *
       * @minItems 1
       * @maxItems 64
       */
      conditional: {
        /**
         * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
         */
        host?: string;
        /**
         * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
         */
        backend?: string;
        protocol?: Protocol;
        /**
         * Values from the service's response (`response`), as CEL expressions, which other expressions read as `extauthz.<name>`. A value whose expression fails is omitted.
         */
        metadata?: {
          [k: string]: string;
        };
        /**
         * Headers of the request that are sent to the service. By default, `authorization` over HTTP and all over gRPC.
         */
        includeRequestHeaders?: (string | (':method' | ':path' | ':authority' | ':scheme'))[];
        includeRequestBody?: IncludeRequestBody;
        cache?: Cache;
        policies?: Policies2;
        failureMode?: FailureMode;
        /**
         * Response to a denied request: 403 with a fixed text, or the service's response. By default, `fixed` over HTTP and `passthrough` over gRPC.
         */
        denyResponse?: 'fixed' | 'passthrough';
        /**
         * CEL expression: the entry applies if it is true. The last entry may have none.
         */
        condition?: string;
      }[];
    };
/**
 * What happens if the service cannot be reached or times out.
 */
export type FailureMode =
  | ('deny' | 'allow')
  | {
      /**
       * Deny with this status.
       */
      denyWithStatus: number | string;
    };
/**
 * Rejects requests with 403 unless the rules allow them.
 */
export type Authorization = {
  /**
   * CEL expressions, all of which must be true. With the forms `allow:`, `deny:` and `require:`, a request is rejected if any `deny` rule is true; it needs all `require` rules and, if there are any, one of the `allow` rules.
   *
   * @minItems 1
   */
  rules: Rules2[];
} | null;
/**
 * Budgets of LLM calls, kept in `config.database`. A call reserves the tokens of its prompt and the most that it asks for as output (1000 tokens if it sets no maximum), and is charged what it has used. If a budget has less left, it is rejected with 429.
 *
 * @minItems 1
 */
export type Budgets = {
  /**
   * Name in messages, metrics and the database. Budgets with the same name, unit and window count together, on whichever routes they are.
   */
  name: string;
  /**
   * Amount per window: USD, by the prices of `config.modelCatalog`, or tokens; per `hour`, `day`, `week` (from Monday), `month` (in UTC) or `total`.
   */
  limit: '10USD/day' | '500000tokens/month' | (string & {});
  /**
   * CEL expression such as `apiKey.team` or `jwt.sub`: each value has the whole amount for itself. By default, all calls share it. Calls for which the expression fails share one amount too; the first of them is logged.
   */
  key?: string;
  /**
   * What happens to calls that cannot be counted, because the database fails or the price of the model is unknown: `failClosed` refuses them (503, or 403 without a price), `failOpen` lets them through.
   */
  failureMode?: 'failClosed' | 'failOpen';
}[];
/**
 * Lets a service read and change requests and responses, with Envoy's protocol `envoy.service.ext_proc.v3` (gRPC).
 */
export type ExtProc =
  | {
      /**
       * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
       */
      host?: string;
      /**
       * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
       */
      backend?: string;
      policies?: Policies3;
      failureMode?: FailureMode2;
      metadataContext?: MetadataContext;
      /**
       * Values for the service with a request (`attributes`), as CEL expressions.
       */
      requestAttributes?: {
        [k: string]: string;
      } | null;
      /**
       * Values for the service with a response (`attributes`), as CEL expressions.
       */
      responseAttributes?: {
        [k: string]: string;
      } | null;
      processingOptions?: ProcessingOptions;
    }
  | {
      /**
       * Entries, of which the first whose condition is true applies.
       *
       * @minItems 1
       * @maxItems 64
       */
      conditional: {
        /**
         * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
         */
        host?: string;
        /**
         * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
         */
        backend?: string;
        policies?: Policies3;
        failureMode?: FailureMode2;
        metadataContext?: MetadataContext;
        /**
         * Values for the service with a request (`attributes`), as CEL expressions.
         */
        requestAttributes?: {
          [k: string]: string;
        } | null;
        /**
         * Values for the service with a response (`attributes`), as CEL expressions.
         */
        responseAttributes?: {
          [k: string]: string;
        } | null;
        processingOptions?: ProcessingOptions;
        /**
         * CEL expression: the entry applies if it is true. The last entry may have none.
         */
        condition?: string;
      }[];
    };
/**
 * How the gateway connects to the service. `http.requestTimeout` limits the time of each answer; 10s by default.
 */
export type Policies3 = {
  backendTLS?: BackendTLS;
  backendAuth?: BackendAuth;
  /**
   * Calls of the service.
   */
  http?: {
    /**
     * Maximum time of a call.
     */
    requestTimeout?: '30s' | (string & {});
  } | null;
  tcp?: Tcp;
} | null;
/**
 * What happens if the service cannot be reached, takes too long, or does not keep to the protocol: `failClosed` rejects the request with 500; `failOpen` passes it or its response on as it was, unless a part was passed on already.
 */
export type FailureMode2 = 'failClosed' | 'failOpen';
/**
 * Maps for the service (`metadata_context`), as CEL expressions; one that fails is omitted. The values of `agentgateway.dev.grpc_initial_metadata` are sent as metadata of the gRPC call.
 */
export type MetadataContext = {
  [k: string]: {
    [k: string]: string;
  };
} | null;
/**
 * Which parts of requests and responses are sent to the service.
 */
export type ProcessingOptions = {
  /**
   * How the body of the request is sent: not at all; whole, up to `frontendPolicies.http.maxBufferSize`, beyond which the request is rejected; its beginning, up to that size; or in pieces as they arrive, which the service returns changed or not.
   */
  requestBodyMode?: 'none' | 'buffered' | 'bufferedPartial' | 'fullDuplexStreamed';
  /**
   * How the body of the response is sent: not at all; whole, up to `frontendPolicies.http.maxBufferSize`, beyond which the response is rejected; its beginning, up to that size; or in pieces as they arrive, which the service returns changed or not.
   */
  responseBodyMode?: 'none' | 'buffered' | 'bufferedPartial' | 'fullDuplexStreamed';
  /**
   * Whether headers of requests are sent.
   */
  requestHeaderMode?: 'send' | 'skip';
  /**
   * Whether headers of responses are sent.
   */
  responseHeaderMode?: 'send' | 'skip';
  /**
   * For compatibility: the gateway passes no trailers on, so it has none to send.
   */
  requestTrailerMode?: 'send' | 'skip';
  /**
   * For compatibility, likewise.
   */
  responseTrailerMode?: 'send' | 'skip';
  /**
   * Whether the service can change these modes for a request (`mode_override`), except a `fullDuplexStreamed` one.
   */
  allowModeOverride?: boolean | string;
} | null;
/**
 * Policies of your own, in TypeScript: each can change, answer or deny requests, responses, calls of MCP servers and of models. They run in order, inside the gateway and with all its rights.
 *
 * @minItems 1
 */
export type Modules = {
  /**
   * File whose default export is the policy, in TypeScript or JavaScript. It is loaded again when it, or a file that it imports, has changed.
   */
  module?: string;
  /**
   * Name of a policy that the program gives to `createGateway`, instead of a file.
   */
  policy?: string;
  /**
   * Options of the policy, which the policy's own schema checks.
   */
  options?: {
    [k: string]: unknown;
  } | null;
  /**
   * How long one function of the policy may take; then the request is answered with 500. 5s by default. Code that never waits is not interrupted.
   */
  timeout?: '30s' | (string & {});
}[];
/**
 * Computes headers, bodies and other parts of requests and responses.
 */
export type Transformations =
  | {
      request?: Request;
      response?: Response;
    }
  | {
      /**
       * Entries, of which the first whose condition is true applies.
       *
       * @minItems 1
       * @maxItems 64
       */
      conditional: {
        request?: Request;
        response?: Response;
        /**
         * CEL expression: the entry applies if it is true. The last entry may have none.
         */
        condition?: string;
      }[];
    };
/**
 * Conditions on requests: the route handles requests that match one of the entries. Every request by default.
 *
 * @minItems 1
 *
 * Items: A condition on requests.
 */
export type Matches = {
  /**
   * Condition on the path.
   */
  path?: {
    /**
     * The whole path.
     */
    exact?: string;
    /**
     * Leading segments of the path: `/a` matches `/a` and `/a/b`, not `/ab`.
     */
    pathPrefix?: string;
    /**
     * Regular expression (RE2) that the whole path must match.
     */
    regex?: string;
  } | null;
  /**
   * Conditions on headers.
   */
  headers?: Headers[];
  /**
   * HTTP method.
   */
  method?: string;
  /**
   * Conditions on query parameters, on their decoded values.
   */
  query?: {
    /**
     * Query parameter.
     */
    name: string;
    /**
     * Condition on the value.
     */
    value: {
      /**
       * The whole value.
       */
      exact?: string;
      /**
       * Regular expression (RE2) that the whole value must match.
       */
      regex?: string;
    };
  }[];
}[];
/**
 * Policies of this route, run before its backend.
 */
export type Policies4 = {
  timeout?: Timeout;
  cors?: Cors;
  responseHeaderModifier?: ResponseHeaderModifier;
  mcpAuthentication?: McpAuthentication;
  oidc?: Oidc;
  jwtAuth?: JwtAuth;
  basicAuth?: BasicAuth;
  apiKey?: ApiKey;
  extAuthz?: ExtAuthz;
  authorization?: Authorization;
  csrf?: Csrf;
  localRateLimit?: LocalRateLimit;
  remoteRateLimit?: RemoteRateLimit;
  budgets?: Budgets;
  mcpAuthorization?: McpAuthorization;
  mcpGuardrails?: McpGuardrails;
  buffer?: Buffer;
  extProc?: ExtProc;
  modules?: Modules;
  transformations?: Transformations;
  requestHeaderModifier?: RequestHeaderModifier;
  ai?: Ai;
  backendTLS?: BackendTLS;
  backendAuth?: BackendAuth3;
  urlRewrite?: UrlRewrite;
  retry?: Retry;
  requestRedirect?: RequestRedirect;
  /**
   * Answers the page on which users sign in at MCP servers, `config.mcp.signIn.url`, and the callback below it. Its route needs no backend.
   */
  mcpSignIn?: {} | null;
  delay?: Delay;
  directResponse?: DirectResponse;
  /**
   * For agents with the Agent2Agent protocol (A2A): URLs in agent cards lead through the gateway, and the access log has the method and outcome of calls.
   */
  a2a?: {} | null;
  requestMirror?: RequestMirror;
} | null;
/**
 * Limits how long requests may take.
 */
export type Timeout = {
  /**
   * Maximum time from the request to its response headers, including all policies and backend calls; then 504. Unlimited by default.
   */
  requestTimeout?: '30s' | (string & {});
  /**
   * Maximum time of one backend call until its response headers; then 504, or an MCP error for calls of MCP servers over HTTP and of `openapi` targets. 5m by default. No effect on stdio targets, whose responses have no headers.
   */
  backendRequestTimeout?: '30s' | (string & {});
  /**
   * Maximum time without data in a backend's response body, or on a WebSocket to a plain HTTP service; then it is aborted. `0s`: unlimited. 5m for plain HTTP services by default (1h for WebSockets), 1m for models. No limit for MCP servers.
   */
  backendIdleTimeout?: '30s' | (string & {});
} | null;
/**
 * Changes response headers before the response is sent to the client.
 */
export type ResponseHeaderModifier = {
  /**
   * Headers to add; existing headers of the same name are kept.
   */
  add?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to set; existing headers of the same name are replaced.
   */
  set?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to remove, after `add` and `set`.
   */
  remove?: string[];
} | null;
/**
 * Validates bearer tokens (JWT) of an identity provider, and serves the metadata that MCP clients need to sign in.
 */
export type McpAuthentication = {
  /**
   * `strict`: a valid token is required. `optional`: no token or a valid one. `permissive`: requests are never rejected; claims are set if the token is valid.
   */
  mode?: 'strict' | 'optional' | 'permissive';
  /**
   * Issuer of the tokens: must equal their `iss` claim, as in `https://idp.example.com/realms/main`.
   */
  issuer: string;
  /**
   * Accepted audiences: `aud` of a token must contain one of them.
   *
   * @minItems 1
   */
  audiences: string[];
  /**
   * Kind of identity provider, if it follows neither RFC 8414 nor OpenID Connect Discovery.
   */
  provider?: {
    /**
     * A provider whose issuer is a realm (`…/realms/<realm>`).
     */
    idpx?: {} | null;
    /**
     * Another name of `idpx`.
     */
    keycloak?: {} | null;
    /**
     * Auth0: the first of `audiences` is requested as `audience`.
     */
    auth0?: {} | null;
    /**
     * Okta: the first of `audiences` is requested as `audience`; clients register at the organization.
     */
    okta?: {} | null;
    /**
     * Descope: keys of the project; clients register at the MCP server.
     */
    descope?: {} | null;
    /**
     * Microsoft Entra ID, which registers no clients: it needs `clientId`.
     */
    entra?: {} | null;
    /**
     * authentik, which registers no clients: it needs `clientId`.
     */
    authentik?: {} | null;
  } | null;
  /**
   * Signing keys: inline JSON, `url` or `file`. Default: those of `provider`, or `jwks_uri` of the metadata of `issuer`.
   */
  jwks?:
    | string
    | {
        /**
         * URL of the key set.
         */
        url: string;
      }
    | {
        /**
         * File with the key set.
         */
        file: string;
      };
  /**
   * Protected-resource metadata for clients (RFC 9728), such as `scopesSupported`. Names become snake case.
   */
  resourceMetadata?: {
    /**
     * URL of the protected resource: `{base_url}/mcp`.
     */
    resource?: string;
    [k: string]: unknown;
  } | null;
  /**
   * Authorization server that clients are directed to. `gateway`: the gateway's copy of the provider's metadata. `issuer`: the provider itself. Defaults to `gateway` with `provider`; without it, always `issuer`.
   */
  authorizationServer?: 'gateway' | 'issuer';
  authorizationLocation?: Location;
  /**
   * Validation of tokens.
   */
  jwtValidationOptions?: {
    /**
     * Claims that a token must have.
     */
    requiredClaims?: ('exp' | 'nbf' | 'aud' | 'iss' | 'sub')[];
  } | null;
  /**
   * Answer all client registrations with this client id instead of forwarding them to the provider.
   */
  clientId?: string;
  /**
   * Redirect URIs that registrations for `clientId` may have, besides those on the user's own machine (`localhost`, `127.0.0.1`, `[::1]`). Compared as text.
   *
   * @maxItems 100
   */
  allowedRedirectURIs?: string[];
  /**
   * Secret of `clientId`, or `{ file: … }`, added to token requests of users for the provider `entra`, if they have none.
   */
  clientSecret?:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
} | null;
/**
 * Rejects requests (403) that a page of another origin makes a browser send. Safe methods are allowed, except to open a WebSocket.
 */
export type Csrf = {
  /**
   * Trusted origins in addition to the origin of the request itself.
   */
  additionalOrigins?: string[];
} | null;
/**
 * Token buckets of this gateway, which its workers share; with `config.shared`, of all gateways that do. If any bucket is empty, the request is rejected with 429. Buckets start full.
 */
export type LocalRateLimit =
  | {
      /**
       * Size of the bucket: the largest burst.
       */
      maxTokens: number | string;
      /**
       * Tokens added per `fillInterval`. By default one: a full bucket of 100 with `fillInterval: 1m` admits 100 requests, then one per minute; write 100 for 100 per minute.
       */
      tokensPerFill?: number | string;
      /**
       * Interval at which tokens are added.
       */
      fillInterval: '30s' | (string & {});
      /**
       * What is counted: requests, or LLM tokens of calls of models, which are deducted when a call has ended.
       */
      type?: 'requests' | 'tokens';
      /**
       * CEL expression such as `source.address`: each value has its own bucket. By default, all requests share one. Requests for which the expression fails share a bucket too, so that they are limited; the first of them is logged.
       */
      key?: string;
    }[]
  | {
      /**
       * Entries, of which the first whose condition is true applies.
       *
       * @minItems 1
       * @maxItems 64
       */
      conditional: {
        /**
         * Size of the bucket: the largest burst.
         */
        maxTokens: number | string;
        /**
         * Tokens added per `fillInterval`. By default one: a full bucket of 100 with `fillInterval: 1m` admits 100 requests, then one per minute; write 100 for 100 per minute.
         */
        tokensPerFill?: number | string;
        /**
         * Interval at which tokens are added.
         */
        fillInterval: '30s' | (string & {});
        /**
         * What is counted: requests, or LLM tokens of calls of models, which are deducted when a call has ended.
         */
        type?: 'requests' | 'tokens';
        /**
         * CEL expression such as `source.address`: each value has its own bucket. By default, all requests share one. Requests for which the expression fails share a bucket too, so that they are limited; the first of them is logged.
         */
        key?: string;
        /**
         * CEL expression: the entry applies if it is true. The last entry may have none.
         */
        condition?: string;
      }[];
    };
/**
 * Rate limits that a service counts which implements Envoy's `RateLimitService` (gRPC).
 */
export type RemoteRateLimit =
  | {
      /**
       * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
       */
      host?: string;
      /**
       * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
       */
      backend?: string;
      /**
       * Domain of the limits at the service.
       */
      domain: string;
      descriptors: Descriptors;
      /**
       * What happens if the service fails: `failClosed` answers 500, `failOpen` allows the request.
       */
      failureMode?: 'failClosed' | 'failOpen' | 'FailClosed' | 'FailOpen';
      policies?: Policies;
    }
  | {
      /**
       * Entries, of which the first whose condition is true applies.
       *
       * @minItems 1
       * @maxItems 64
       */
      conditional: {
        /**
         * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
         */
        host?: string;
        /**
         * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
         */
        backend?: string;
        /**
         * Domain of the limits at the service.
         */
        domain: string;
        descriptors: Descriptors;
        /**
         * What happens if the service fails: `failClosed` answers 500, `failOpen` allows the request.
         */
        failureMode?: 'failClosed' | 'failOpen' | 'FailClosed' | 'FailOpen';
        policies?: Policies;
        /**
         * CEL expression: the entry applies if it is true. The last entry may have none.
         */
        condition?: string;
      }[];
    };
/**
 * What the service counts and limits.
 *
 * @minItems 1
 */
export type Descriptors = {
  /**
   * Entries of the descriptor.
   *
   * @minItems 1
   */
  entries: {
    /**
     * Key of the entry.
     */
    key: string;
    /**
     * CEL expression for its value: text, a number or a boolean. If it fails, the descriptor is not sent.
     */
    value: string;
  }[];
  /**
   * What is counted: requests, or LLM tokens, which are reported when a call has ended.
   */
  type?: 'requests' | 'tokens';
  /**
   * CEL expression for the number to count: 1 by default, for `tokens` all tokens of the call. If it fails, the descriptor is not sent.
   */
  cost?: string;
  /**
   * CEL expression for the limit to apply, such as `{"unit": "minute", "requestsPerUnit": 100}`. If it fails, the descriptor is not sent.
   */
  limitOverride?: string;
}[];
/**
 * Tools, prompts and resources that a caller may list and use. Others are removed from lists and calls to them fail as unknown; methods that are not part of MCP are rejected. For `mcp` backends only; use `authorization` for rules on any request.
 */
export type McpAuthorization = {
  /**
   * CEL expressions over `mcp.tool`, `mcp.prompt`, `mcp.resource`, `mcp.task` (each with `name` and `target`), `jwt`, `request` and more. An expression alone is an `allow` rule: one that is true suffices.
   *
   * @minItems 1
   */
  rules: Rules2[];
} | null;
/**
 * Checks the arguments and results of tools, prompts and resources; they can be changed or rejected. For `mcp` backends only.
 */
export type McpGuardrails = {
  /**
   * Checks, in order. Each gets what the previous one left; the first that rejects ends the call.
   *
   * @minItems 1
   */
  processors: (
    | {
        /**
         * Patterns.
         */
        kind: 'regex';
        methods?: Methods;
        /**
         * What happens to a match: `mask` replaces it, by a name such as `<EMAIL_ADDRESS>` or by `<masked>`; `reject` rejects the call.
         */
        action?: 'mask' | 'reject';
        rules: Rules3;
      }
    | {
        /**
         * An HTTP service.
         */
        kind: 'webhook';
        methods?: Methods;
        /**
         * Address: `host:port`, a URL without a path, or `unix:/path`.
         */
        host: string;
        /**
         * Path of the calls. Default: `/request` or `/response`, by phase.
         */
        path?: string;
        headers?: Headers2;
        /**
         * What happens if the webhook fails: `failClosed` rejects the message, `failOpen` lets it pass.
         */
        failureMode?: 'failClosed' | 'failOpen';
      }
    | {
        /**
         * A gRPC service with upstream's protocol `ExtMcp`. Needs the packages `@grpc/grpc-js` and `@grpc/proto-loader`, installed next to agctl.
         */
        kind: 'remote';
        methods?: Methods;
        /**
         * Address: `host:port`, a URL without a path, or `unix:/path`.
         */
        host: string;
        /**
         * What happens if the service fails: `failClosed` rejects the message, `failOpen` lets it pass.
         */
        failureMode?: 'failClosed' | 'failOpen';
        /**
         * CEL expressions whose values are sent with each message. One that fails is omitted.
         */
        metadata?: {
          [k: string]: string;
        } | null;
        /**
         * Headers of the client's request that are sent in the request phase; all by default.
         */
        requestHeaders?: {
          /**
           * Headers to send, and `:method`, `:path`, `:authority`, `:scheme`. Empty: all.
           */
          allowed?: string[];
          /**
           * Headers not to send, also if they are allowed.
           */
          disallowed?: string[];
        } | null;
      }
  )[];
} | null;
/**
 * Which messages are checked: the parameters (`request`) or results (`response`) of `tools/call`, `prompts/get` and `resources/read`, or both (`full`); except by patterns, also the results of lists such as `tools/list`. The most specific key decides.
 */
export type Methods = {
  [k: string]: 'off' | 'request' | 'response' | 'full';
} | null;
/**
 * Patterns: `{ builtin: … }` or `{ pattern: … }`.
 *
 * @minItems 1
 */
export type Rules3 = Rules[];
/**
 * Headers of the webhook call, as CEL expressions over the client's request. `:path`, `:method` and `:authority` change the call itself; write a literal path as a quoted CEL string. A header whose expression fails is omitted.
 */
export type Headers2 = {
  [k: string]: string;
} | null;
/**
 * Buffers whole bodies. By default, bodies are streamed.
 */
export type Buffer = {
  /**
   * Buffer request bodies before the backend is called.
   */
  request?: {
    /**
     * Maximum size in bytes; by default, `frontendPolicies.http.maxBufferSize`.
     */
    maxBytes?: number | string;
    /**
     * What happens to a larger body: `failClosed` rejects the request with 413, or the response with 502; `failOpen` streams it.
     */
    failureMode?: 'failClosed' | 'failOpen';
  } | null;
  /**
   * Buffer response bodies of plain HTTP services before they are sent to the client.
   */
  response?: {
    /**
     * Maximum size in bytes; by default, `frontendPolicies.http.maxBufferSize`.
     */
    maxBytes?: number | string;
    /**
     * What happens to a larger body: `failClosed` rejects the request with 413, or the response with 502; `failOpen` streams it.
     */
    failureMode?: 'failClosed' | 'failOpen';
  } | null;
} | null;
/**
 * Changes request headers before the request is sent to the backend.
 */
export type RequestHeaderModifier = {
  /**
   * Headers to add; existing headers of the same name are kept.
   */
  add?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to set; existing headers of the same name are replaced.
   */
  set?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to remove, after `add` and `set`.
   */
  remove?: string[];
} | null;
/**
 * Changes and checks of the calls of models on this route.
 */
export type Ai = {
  /**
   * Request fields to set if the client did not set them.
   */
  defaults?: {
    [k: string]: _Schema1;
  } | null;
  /**
   * Request fields to always set.
   */
  overrides?: {
    [k: string]: _Schema1;
  } | null;
  /**
   * As `transformation` of a model: request fields as CEL expressions.
   */
  transformations?: {
    [k: string]: string;
  } | null;
  /**
   * As `finalTransformation` of a model: fields of the request as it is sent to the provider, as CEL expressions.
   */
  finalTransformations?: {
    [k: string]: string;
  } | null;
  prompts?: Prompts;
  /**
   * Model names that are replaced, by the requested name: one name, `prefix*` or `*suffix`. The most specific one counts.
   */
  modelAliases?: {
    [k: string]: string;
  } | null;
  promptCaching?: PromptCaching;
  /**
   * Guardrails, before those of a model. As `llm.guardrails`.
   */
  promptGuard?: {
    request?: Request2;
    response?: Response2;
    /**
     * `Disabled`: responses that are streams are not checked.
     */
    streaming?: 'Enabled' | 'Disabled';
  } | null;
  routes?: Routes2;
} | null;
export type _Schema1 =
  | string
  | (number | string)
  | (boolean | string)
  | null
  | _Schema1[]
  | {
      [k: string]: _Schema1;
    };
/**
 * Messages that are added to every conversation.
 */
export type Prompts = {
  /**
   * Messages before the client's.
   */
  prepend?: Prepend[];
  /**
   * Messages after the client's.
   */
  append?: Prepend[];
} | null;
/**
 * As `promptCaching` of a model, for models without one. Without effect on other providers.
 */
export type PromptCaching = {
  /**
   * Cache the system prompt.
   */
  cacheSystem?: boolean | string;
  /**
   * Cache the conversation before its last message, from the second message on.
   */
  cacheMessages?: boolean | string;
  /**
   * Cache the definitions of tools.
   */
  cacheTools?: boolean | string;
  /**
   * Estimated tokens that the system prompt must have to be cached; `null` for any.
   */
  minTokens?: (number | string) | null;
  /**
   * Messages before the second to last one at which the cached conversation ends.
   */
  cacheMessageOffset?: number | string;
} | null;
/**
 * A server that checks texts.
 */
export type Webhook = {
  /**
   * The webhook server.
   */
  target: {
    /**
     * Address: `host:port`, a URL without a path, or `unix:/path`.
     */
    host: string;
  };
  headers?: Headers2;
  /**
   * Texts to check beside the content of messages and choices, each as an item of its own: arguments of tool calls, reasoning, and other texts such as titles of documents.
   */
  inspect?: ('toolCalls' | 'reasoning' | 'other')[];
  /**
   * What happens if the webhook fails: `failClosed` rejects the request with 503, `failOpen` continues.
   */
  failureMode?: 'failClosed' | 'failOpen';
} | null;
/**
 * Patterns that are checked by the gateway itself.
 */
export type Regex = {
  /**
   * What happens to a match: `mask` replaces it, by a name such as `<EMAIL_ADDRESS>` or by `<masked>`; `reject` rejects the call.
   */
  action?: 'mask' | 'reject';
  rules: Rules3;
} | null;
/**
 * Checks texts with a guardrail of Amazon Bedrock, which may mask or reject them.
 */
export type BedrockGuardrails = {
  /**
   * Id or ARN of the guardrail.
   */
  guardrailIdentifier: string;
  /**
   * Version of the guardrail, or `DRAFT`.
   */
  guardrailVersion: string;
  /**
   * AWS region of the guardrail.
   */
  region: string;
  /**
   * Server to call instead of that of the region, such as a VPC endpoint.
   */
  baseUrl?: string;
  /**
   * `backendAuth: { aws: {} }`: the credentials of the AWS SDK, which is the default.
   */
  policies?: {
    /**
     * How calls are signed.
     */
    backendAuth?: {
      /**
       * Credentials of the AWS SDK. No settings.
       */
      aws: {};
    } | null;
  } | null;
} | null;
/**
 * Rejects texts in which a template of Google Cloud Model Armor finds a match.
 */
export type GoogleModelArmor = {
  /**
   * Id of the template.
   */
  templateId: string;
  /**
   * Google Cloud project.
   */
  projectId: string;
  /**
   * Location of the template.
   */
  location?: string;
  /**
   * Server to call instead of that of the location, such as a private endpoint.
   */
  baseUrl?: string;
  /**
   * `backendAuth: { gcp: {} }`: Application Default Credentials, which is the default.
   */
  policies?: {
    /**
     * How calls are authorized.
     */
    backendAuth?: {
      /**
       * Application Default Credentials. No settings.
       */
      gcp: {};
    } | null;
  } | null;
} | null;
/**
 * Rejects texts in which Azure AI Content Safety finds a match.
 */
export type AzureContentSafety = {
  /**
   * Host of the Content Safety resource, such as `name.cognitiveservices.azure.com`.
   */
  endpoint: string;
  /**
   * Rejects texts about hate, self-harm, sex or violence, and matches of blocklists.
   */
  analyzeText?: {
    /**
     * Severity from which on a text is rejected.
     */
    severityThreshold?: number | string;
    /**
     * Version of the API.
     */
    apiVersion?: string;
    /**
     * Blocklists; any match is rejected.
     */
    blocklistNames?: string[];
    /**
     * Whether the analysis stops at the first match of a blocklist.
     */
    haltOnBlocklistHit?: boolean | string;
  } | null;
  /**
   * Rejects attempts to escape the rules of a model. For requests only.
   */
  detectJailbreak?: {
    /**
     * Version of the API.
     */
    apiVersion?: string;
  } | null;
  /**
   * Key of the resource. Default: a token of Microsoft Entra ID, from the default credentials.
   */
  policies?: {
    backendAuth: BackendAuth2;
  } | null;
} | null;
/**
 * Response to a call that the guardrail rejects.
 */
export type Rejection = {
  /**
   * Status of the response.
   */
  status?: number | string;
  /**
   * Body of the response, sent as it is: text, or a list of its bytes in UTF-8. In a stream, the message of its error event.
   */
  body?: string | (number | string)[];
  /**
   * Changes to the headers of the response, such as `set: { content-type: application/json }`.
   */
  headers?: {
    /**
     * Headers to add; existing headers of the same name are kept.
     */
    add?: {
      [k: string]: string;
    } | null;
    /**
     * Headers to set; existing headers of the same name are replaced.
     */
    set?: {
      [k: string]: string;
    } | null;
    /**
     * Headers to remove, after `add` and `set`.
     */
    remove?: string[];
  } | null;
} | null;
/**
 * Guardrails for requests, in order. Each receives the texts left by the previous one.
 *
 * Items: One guardrail.
 */
export type Request2 = {
  webhook?: Webhook;
  regex?: Regex;
  bedrockGuardrails?: BedrockGuardrails;
  googleModelArmor?: GoogleModelArmor;
  azureContentSafety?: AzureContentSafety;
  /**
   * Rejects requests that the moderation API of OpenAI flags.
   */
  openAIModeration?: {
    /**
     * Moderation model.
     */
    model?: string;
    /**
     * Server with the path `/v1/moderations`.
     */
    baseUrl?: string;
    /**
     * How the gateway connects to the service.
     */
    policies: {
      backendAuth: BackendAuth2;
    };
  } | null;
  /**
   * What is checked: system prompts, other messages, results of tools, arguments of tool calls, and definitions of tools and formats of answers. Only for `regex` and `bedrockGuardrails`. Texts of no such category, such as metadata, are checked in any case. Default: `[systemPrompt, messages]`.
   *
   * @minItems 1
   */
  scope?: ('systemPrompt' | 'messages' | 'toolOutput' | 'toolInput' | 'toolDefinitions')[];
  rejection?: Rejection;
}[];
/**
 * Guardrails for responses, in order. Streams are held back until they are checked.
 *
 * Items: One guardrail.
 */
export type Response2 = {
  webhook?: Webhook;
  regex?: Regex;
  bedrockGuardrails?: BedrockGuardrails;
  googleModelArmor?: GoogleModelArmor;
  azureContentSafety?: AzureContentSafety;
  rejection?: Rejection;
}[];
/**
 * Calls that are allowed, by the end of their path; the longest one that fits counts, and `*` fits all. The value is the type of the call. `passthrough` and `detect` forward it unchanged, and read usage where it is recognized. Without this setting: all calls that a `models` entry allows by default.
 */
export type Routes2 = {
  [k: string]:
    | 'completions'
    | 'messages'
    | 'responses'
    | 'anthropicTokenCount'
    | 'embeddings'
    | 'rerank'
    | 'realtime'
    | 'models'
    | 'passthrough'
    | 'detect';
} | null;
/**
 * Sends a credential to the backend instead of that of the client.
 */
export type BackendAuth3 = {
  key?: Key2;
  passthrough?: Passthrough;
  jwtSign?: JwtSign;
  oauthTokenExchange?: OauthTokenExchange;
  crossAppAccess?: CrossAppAccess;
  aws?: Aws;
  gcp?: Gcp;
  azure?: Azure;
  credentials?: Credentials;
} | null;
/**
 * A key, or `{ file: … }`; as `{ value: …, location: … }` also with its place.
 */
export type Key2 =
  | (
      | string
      | {
          /**
           * File with the text. It is read again when it changes.
           */
          file: string;
        }
    )
  | {
      /**
       * The key.
       */
      value:
        | string
        | {
            /**
             * File with the text. It is read again when it changes.
             */
            file: string;
          };
      location?: Location2;
    };
/**
 * Place of the credential in the request. Default: `Authorization: Bearer` for a `host`, the header of the provider for models.
 */
export type Location2 = {
  header?: Header2;
  /**
   * A query parameter.
   */
  queryParameter?: {
    /**
     * Name of the parameter.
     */
    name: string;
  } | null;
  /**
   * A cookie.
   */
  cookie?: {
    /**
     * Name of the cookie.
     */
    name: string;
  };
} | null;
/**
 * The token of the client that `jwtAuth` or `mcpAuthentication` has validated and removed.
 */
export type Passthrough = {
  location?: Location2;
} | null;
/**
 * A token (JWT) that is signed for each request.
 */
export type JwtSign = {
  /**
   * Private key (PEM), or `{ file: … }`.
   */
  signingKey:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
  /**
   * Algorithm of the signature; it must fit the key.
   */
  alg?: 'RS256' | 'RS384' | 'RS512' | 'PS256' | 'ES256' | 'ES384';
  /**
   * Id of the key, for the header of the token.
   */
  kid?: string | null;
  /**
   * Claims of every token, such as `iss`, `sub` and `aud`.
   */
  claims?: {
    [k: string]: _Schema2;
  } | null;
  /**
   * Lifetime of a token, as its `exp` says.
   */
  ttl?: '30s' | (string & {});
  location?: Location2;
} | null;
export type _Schema2 =
  | string
  | (number | string)
  | (boolean | string)
  | null
  | _Schema2[]
  | {
      [k: string]: _Schema2;
    };
/**
 * A token that an OAuth authorization server issues for that of the client.
 */
export type OauthTokenExchange = {
  /**
   * Authorization server: `host:port` or a URL without a path. Port 443 uses TLS.
   */
  host: string;
  /**
   * Path of its token endpoint.
   */
  path?: string;
  /**
   * `tokenExchange`: RFC 8693. `jwtBearer`: RFC 7523, the token of the client is the assertion.
   */
  grantType?: 'tokenExchange' | 'jwtBearer';
  /**
   * The token to exchange.
   */
  subjectToken?: {
    /**
     * Location of the token of the client. Default: `Authorization: Bearer`, else the token that a policy has validated.
     */
    source?: {
      header?: Header;
      /**
       * A query parameter.
       */
      queryParameter?: {
        /**
         * Name of the parameter.
         */
        name: string;
      } | null;
      /**
       * A cookie.
       */
      cookie?: {
        /**
         * Name of the cookie.
         */
        name: string;
      } | null;
      /**
       * CEL expression for the credential.
       */
      expression?: string;
    } | null;
    /**
     * Its type (RFC 8693 §3).
     */
    tokenType?: string;
  } | null;
  /**
   * Token of who acts for the client (RFC 8693 §1.1).
   */
  actorToken?: {
    /**
     * Location of the token in the request.
     */
    source: {
      header?: Header;
      /**
       * A query parameter.
       */
      queryParameter?: {
        /**
         * Name of the parameter.
         */
        name: string;
      } | null;
      /**
       * A cookie.
       */
      cookie?: {
        /**
         * Name of the cookie.
         */
        name: string;
      } | null;
      /**
       * CEL expression for the credential.
       */
      expression?: string;
    };
    /**
     * Its type (RFC 8693 §3).
     */
    tokenType?: string;
  } | null;
  /**
   * Requested audiences.
   */
  audiences?: string[];
  /**
   * Requested scopes.
   */
  scopes?: string[];
  /**
   * URIs of the services that the token is for.
   */
  resources?: string[];
  /**
   * Requested type of token.
   */
  requestedTokenType?: string;
  /**
   * Authentication of the gateway at the server; none by default.
   */
  clientAuth?: {
    /**
     * How the gateway authenticates.
     */
    method?: 'clientSecretBasic' | 'clientSecretPost';
    /**
     * Id of the gateway at the server.
     */
    clientId: string;
    clientSecret?: ClientSecret;
  } | null;
  /**
   * Further parameters, as CEL expressions.
   */
  additionalParams?: {
    [k: string]: string;
  } | null;
  /**
   * Place of the new token; `Authorization: Bearer` by default.
   */
  authorizationLocation?: {
    header?: Header2;
    /**
     * A query parameter.
     */
    queryParameter?: {
      /**
       * Name of the parameter.
       */
      name: string;
    } | null;
    /**
     * A cookie.
     */
    cookie?: {
      /**
       * Name of the cookie.
       */
      name: string;
    };
  } | null;
  cache?: Cache2;
} | null;
/**
 * Its secret, or `{ file: … }`.
 */
export type ClientSecret =
  | string
  | {
      /**
       * File with the text. It is read again when it changes.
       */
      file: string;
    };
/**
 * Cache of tokens. They are kept until shortly before they expire.
 */
export type Cache2 = {
  /**
   * Tokens to keep; 0 keeps none.
   */
  maxEntries?: number | string;
  /**
   * How long to keep tokens that have no lifetime.
   */
  defaultTtl?: '30s' | (string & {});
} | null;
/**
 * A token for a service of another organization, in the name of the user (Cross App Access): the identity provider issues an assertion, for which the authorization server of the service issues the token.
 */
export type CrossAppAccess = {
  /**
   * Authorization server that signed the user in; it issues the assertion (ID-JAG).
   */
  identityProvider: {
    /**
     * Authorization server: `host:port` or a URL without a path. Port 443 uses TLS.
     */
    host: string;
    /**
     * Path of its token endpoint.
     */
    path?: string;
    clientAuth: ClientAuth;
  };
  /**
   * Authorization server of the backend; it issues the access token for the assertion.
   */
  resourceAuthorizationServer: {
    /**
     * Authorization server: `host:port` or a URL without a path. Port 443 uses TLS.
     */
    host: string;
    /**
     * Path of its token endpoint.
     */
    path?: string;
    clientAuth: ClientAuth;
  };
  /**
   * Identifier (issuer) of `resourceAuthorizationServer`.
   */
  audience: string;
  /**
   * URIs of the services that the token is for.
   */
  resources?: string[];
  /**
   * Scopes to request.
   */
  scopes?: string[];
  /**
   * Scopes to request in the second step. Default: `scopes`. An empty list requests none.
   */
  accessTokenScopes?: string[];
  /**
   * The token of the user: that of OpenID Connect (ID token).
   */
  subjectToken?: {
    /**
     * Location of the token of the user. Default: `Authorization: Bearer`, else the token that a policy has validated.
     */
    source?: {
      header?: Header;
      /**
       * A query parameter.
       */
      queryParameter?: {
        /**
         * Name of the parameter.
         */
        name: string;
      } | null;
      /**
       * A cookie.
       */
      cookie?: {
        /**
         * Name of the cookie.
         */
        name: string;
      } | null;
      /**
       * CEL expression for the credential.
       */
      expression?: string;
    } | null;
    /**
     * Its type (RFC 8693 §3).
     */
    tokenType?: string;
  } | null;
  cache?: Cache2;
} | null;
/**
 * Signs requests for services of AWS (Signature Version 4). Bodies are held until they are signed.
 */
export type Aws = {
  /**
   * Id of the access key. Default: the credentials of the machine.
   */
  accessKeyId?: string;
  /**
   * Secret of the access key, or `{ file: … }`.
   */
  secretAccessKey?:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
  /**
   * Token of temporary credentials, or `{ file: … }`.
   */
  sessionToken?:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
  /**
   * Region of the service. Default: that of the Bedrock provider that is called, else AWS_REGION or AWS_DEFAULT_REGION.
   */
  region?: string;
  /**
   * Signing name of the service, such as `execute-api` or `lambda`. Default: `bedrock`.
   */
  serviceName?: string;
  /**
   * A role to assume before requests are signed.
   */
  assumeRole?: {
    /**
     * ARN of the role.
     */
    roleArn: string;
    /**
     * Name of the session in the logs of AWS. Default: `agctl`.
     */
    sessionName?: string | {};
    /**
     * Tags of the session.
     *
     * @maxItems 50
     */
    tags?: {
      /**
       * Key.
       */
      key: string;
      /**
       * Value.
       */
      value: string;
    }[];
  } | null;
} | null;
/**
 * Sends a token of Google Cloud.
 */
export type Gcp = {
  /**
   * `accessToken`: for Google's APIs. `idToken`: for services such as Cloud Run.
   */
  type?: 'accessToken' | 'idToken';
  /**
   * URL of the service, for an `idToken`. Default: `https://` and the host of the request.
   */
  audience?: string;
  /**
   * Text of a credentials file of Google Cloud (JSON), or `{ file: … }`. Default: Application Default Credentials.
   */
  credential?:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
} | null;
/**
 * Sends a token of Microsoft Entra ID.
 */
export type Azure = {
  /**
   * The identity that the environment gives: variables, a workload identity, a managed identity, the accounts of developer tools.
   */
  implicit?: {} | null;
  /**
   * The account of `az`, `azd` or Azure PowerShell. For development only.
   */
  developerImplicit?: {} | null;
  /**
   * One kind of identity.
   */
  explicitConfig?: {
    /**
     * An application with a secret.
     */
    clientSecret?: {
      /**
       * Id of the tenant.
       */
      tenant_id: string;
      /**
       * Id of the application.
       */
      client_id: string;
      /**
       * Its secret, or `{ file: … }`.
       */
      client_secret:
        | string
        | {
            /**
             * File with the text. It is read again when it changes.
             */
            file: string;
          };
    } | null;
    /**
     * The managed identity of the machine.
     */
    managedIdentity?: {
      /**
       * One of several identities. Default: that of the system.
       */
      userAssignedIdentity?: {
        /**
         * By its client id.
         */
        clientId?: string;
        /**
         * By its object id.
         */
        objectId?: string;
        /**
         * By its resource id.
         */
        resourceId?: string;
      } | null;
    } | null;
    /**
     * The workload identity of the pod.
     */
    workloadIdentity?: {} | null;
  } | null;
} | null;
/**
 * Further credentials.
 */
export type Credentials = {
  /**
   * The credential, or `{ file: … }`.
   */
  key:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
  /**
   * Its place in the request.
   */
  location: {
    header?: Header2;
    /**
     * A query parameter.
     */
    queryParameter?: {
      /**
       * Name of the parameter.
       */
      name: string;
    } | null;
    /**
     * A cookie.
     */
    cookie?: {
      /**
       * Name of the cookie.
       */
      name: string;
    };
  };
}[];
/**
 * Changes the path of requests, and the Host header for plain HTTP services.
 */
export type UrlRewrite = {
  /**
   * Host header for plain HTTP services. `auto`: the configured host name of the service, or the host of the request if the service is configured by address. `none`: the host of the request. LLM providers and MCP servers always get their own host.
   */
  authority?:
    | ('auto' | 'none')
    | {
        /**
         * The whole authority.
         */
        full: string;
      }
    | {
        /**
         * The host. The port of the request is kept.
         */
        host: string;
      }
    | {
        /**
         * The port. The host of the request is kept.
         */
        port: number | string;
      };
  /**
   * Path for the backend, instead of that of the request. The query is kept.
   */
  path?:
    | {
        /**
         * The new path.
         */
        full: string;
      }
    | {
        /**
         * New beginning of the path, instead of the `pathPrefix` that the route matched. `/`: the prefix is removed.
         */
        prefix: string;
      };
} | null;
/**
 * Repeats failed calls of backends. Not those of MCP servers that were sent, nor model calls that succeeded.
 */
export type Retry = {
  /**
   * How often a failed call is repeated, if possible at another backend.
   */
  attempts?: number | string;
  /**
   * Wait before each repetition; none by default.
   */
  backoff?: '30s' | (string & {});
  /**
   * Statuses of responses after which the call is repeated. Calls that could not connect are always repeated.
   */
  codes: (number | string)[];
  /**
   * CEL expression on the request: unless it is true, the call is not repeated.
   */
  precondition?: string;
  /**
   * CEL expression on the response (`response`): if it is true, the call is repeated, whatever its status.
   */
  condition?: string;
} | null;
/**
 * Redirects the client to another URL. No backend is called.
 */
export type RequestRedirect = {
  /**
   * Scheme of the new URL. Without `scheme` and `authority`, the new URL consists of the path only.
   */
  scheme?: 'http' | 'https';
  /**
   * Host and port of the new URL, or one of them. `none`, and `auto` too because no backend is called: those of the request.
   */
  authority?:
    | ('none' | 'auto')
    | {
        /**
         * The whole authority.
         */
        full: string;
      }
    | {
        /**
         * The host. The port of the request is kept.
         */
        host: string;
      }
    | {
        /**
         * The port. The host of the request is kept.
         */
        port: number | string;
      };
  /**
   * Path of the new URL; by default, that of the request. The query is always kept.
   */
  path?:
    | {
        /**
         * The new path.
         */
        full: string;
      }
    | {
        /**
         * New beginning of the path, instead of the `pathPrefix` that the route matched. `/`: the prefix is removed.
         */
        prefix: string;
      };
  /**
   * Status of the response.
   */
  status?: (301 | string) | (302 | string) | (303 | string) | (307 | string) | (308 | string);
} | null;
/**
 * Delays requests, to test how clients and services handle slow responses.
 */
export type Delay = {
  /**
   * How long requests wait: a duration such as `2s`, or a CEL expression for a duration or a number of ms, such as `random() < 0.1 ? 500 : 0`. At most 5m; zero, less, or an expression that fails is not a delay.
   */
  duration: string;
} | null;
/**
 * Answers requests without a backend.
 */
export type DirectResponse =
  | {
      /**
       * Status of the response.
       */
      status?: number | string;
      /**
       * Body of the response: text, or a list of bytes.
       */
      body?: string | (number | string)[];
      /**
       * CEL expression for the body, instead of `body`: text, bytes, or a value that becomes JSON.
       */
      bodyExpression?: string;
      /**
       * Response headers as CEL expressions. A header whose expression fails is omitted.
       */
      headers?: {
        [k: string]: string;
      } | null;
    }
  | {
      /**
       * Entries, of which the first whose condition is true applies.
       *
       * @minItems 1
       * @maxItems 64
       */
      conditional: {
        /**
         * Status of the response.
         */
        status?: number | string;
        /**
         * Body of the response: text, or a list of bytes.
         */
        body?: string | (number | string)[];
        /**
         * CEL expression for the body, instead of `body`: text, bytes, or a value that becomes JSON.
         */
        bodyExpression?: string;
        /**
         * Response headers as CEL expressions. A header whose expression fails is omitted.
         */
        headers?: {
          [k: string]: string;
        } | null;
        /**
         * CEL expression: the entry applies if it is true. The last entry may have none.
         */
        condition?: string;
      }[];
    };
/**
 * Sends copies of requests to another service, whose responses are discarded.
 */
export type RequestMirror = {
  /**
   * The service that receives the copies.
   */
  backend: {
    /**
     * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
     */
    host?: string;
    /**
     * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
     */
    backend?: string;
  };
  /**
   * Share of the requests that are copied, from 0 to 1.
   */
  percentage: number | string;
} | null;
/**
 * Policies of this backend, run once it was picked, after those of the route.
 */
export type Policies5 = {
  responseHeaderModifier?: ResponseHeaderModifier;
  /**
   * Asks an external service whether a request is allowed.
   */
  extAuthz?: {
    /**
     * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
     */
    host?: string;
    /**
     * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
     */
    backend?: string;
    protocol?: Protocol;
    /**
     * Values from the service's response (`response`), as CEL expressions, which other expressions read as `extauthz.<name>`. A value whose expression fails is omitted.
     */
    metadata?: {
      [k: string]: string;
    };
    /**
     * Headers of the request that are sent to the service. By default, `authorization` over HTTP and all over gRPC.
     */
    includeRequestHeaders?: (string | (':method' | ':path' | ':authority' | ':scheme'))[];
    includeRequestBody?: IncludeRequestBody;
    cache?: Cache;
    policies?: Policies2;
    failureMode?: FailureMode;
    /**
     * Response to a denied request: 403 with a fixed text, or the service's response. By default, `fixed` over HTTP and `passthrough` over gRPC.
     */
    denyResponse?: 'fixed' | 'passthrough';
  } | null;
  authorization?: Authorization;
  mcpAuthorization?: McpAuthorization;
  mcpGuardrails?: McpGuardrails;
  /**
   * Computes headers, bodies and other parts of requests and responses.
   */
  transformations?: {
    request?: Request;
    response?: Response;
  } | null;
  requestHeaderModifier?: RequestHeaderModifier;
  ai?: Ai;
  backendTLS?: BackendTLS;
  /**
   * Connections to this backend.
   */
  tcp?: {
    /**
     * Maximum time to open a connection; then 504. Default: 10 s.
     */
    connectTimeout?: '30s' | (string & {});
    /**
     * Keepalive probes of TCP.
     */
    keepalives?: {
      /**
       * Whether idle connections are probed.
       */
      enabled?: boolean | string;
      /**
       * Idle time before the first probe.
       */
      time?: '30s' | (string & {});
    } | null;
  } | null;
  /**
   * Calls of this backend.
   */
  http?: {
    /**
     * Version of HTTP. `HTTP/2`: negotiated with TLS, else without an upgrade (prior knowledge). Default: `HTTP/1.1`.
     */
    version?: ('HTTP/1.1' | 'HTTP/2' | 'HTTP/2.0') | null;
    /**
     * Maximum time of one call until its response headers; then 504. It replaces `backendRequestTimeout` of the route.
     */
    requestTimeout?: '30s' | (string & {}) | null;
  } | null;
  /**
   * Asks an endpoint picker of the Gateway API Inference Extension which endpoint of a `service` gets a request, with Envoy's protocol `envoy.service.ext_proc.v3` (gRPC).
   */
  inferenceRouting?: {
    /**
     * The endpoint picker. It reads and can change requests and responses, whose bodies pass through it. If it fails, the request is rejected with 500; if it names no endpoint, with 503.
     */
    endpointPicker: {
      /**
       * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
       */
      host?: string;
      /**
       * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
       */
      backend?: string;
    };
    /**
     * `passthrough`: the request is sent to the address that the picker names (`ip:port`), or to the next one of several if it cannot be connected to. Which addresses it names is not restricted, except those of the local link and of groups.
     */
    destinationMode: 'passthrough';
  } | null;
  backendAuth?: BackendAuth3;
  requestRedirect?: RequestRedirect;
  /**
   * For agents with the Agent2Agent protocol (A2A): URLs in agent cards lead through the gateway, and the access log has the method and outcome of calls.
   */
  a2a?: {} | null;
  requestMirror?: RequestMirror;
} | null;
/**
 * One or more MCP servers behind one endpoint.
 */
export type Mcp = {
  targets: Targets;
  statefulMode?: StatefulMode;
  /**
   * Whether tools are named `target_tool`: with several targets only, always, or never.
   */
  prefixMode?: 'conditional' | 'always' | 'never';
  /**
   * What happens when a target fails. `failOpen`: sessions continue with the other targets. `failClosed`: every session fails.
   */
  failureMode?: 'failOpen' | 'failClosed';
  toolPinning?: ToolPinning;
  toolSearch?: ToolSearch;
  bundles?: Bundles;
  /**
   * Whether to check Host and Origin against configured host names. `auto`: on connections to a loopback address. `true`: on all connections. `false`: never.
   */
  dnsRebindingProtection?: 'auto' | (boolean | string);
} | null;
/**
 * MCP servers that this endpoint offers together.
 *
 * @minItems 1
 */
export type Targets = {
  /**
   * Name of the target. Prefixes the names of its tools when there are several targets.
   */
  name: string;
  /**
   * A local MCP server that the gateway starts as a child process, one per session, and uses over stdin and stdout.
   */
  stdio?: {
    /**
     * Command that starts the MCP server. Looked up on PATH; no shell is involved.
     */
    cmd: string;
    /**
     * Arguments of the command, passed unchanged.
     */
    args?: string[];
    /**
     * Environment variables for the server, in addition to those that it inherits from the gateway: PATH, HOME, LANG and the like; certificates and proxies (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY, ...), with a proxy's password if its URL has one; npm_config_*, UV_* and PIP_*.
     */
    env?: {
      [k: string]: string;
    } | null;
    /**
     * Pass the gateway's whole environment to the server. Off by default, because it may contain keys of other services.
     */
    inheritEnv?: boolean | string;
    /**
     * Run one process for all sessions of the backend instead of one per session. For servers without state per client: all callers see the same state, and the server can neither send requests nor log messages to a client.
     */
    shared?: boolean | string;
    /**
     * Working folder of the server, relative to the folder of the configuration file, which is the default.
     */
    cwd?: string;
    /**
     * Number of processes that are started in advance, so that a new session does not wait for the start of the command. Each is given to one session and then replaced. They count towards `config.mcp.maxChildren` and are the first to be stopped at that limit.
     */
    warm?: number | string;
    /**
     * Stops the process of a session that has been unused for this time; the session's next request starts another. For servers without state: only the log level and resource subscriptions are restored, and a stopped server sends no updates. Off by default. With `shared`: how long the process is kept after its last session.
     */
    idleTimeout?: '30s' | (string & {});
    /**
     * Start with an empty environment: the server only gets `env`.
     */
    clear_env?: boolean | string;
  } | null;
  /**
   * A remote MCP server, reached over Streamable HTTP.
   */
  mcp?: {
    /**
     * URL of the MCP endpoint (`https://host/mcp`), a host name together with `port` and `path`, or a Unix socket (`unix:/path/of/socket`), to which `path` can be added.
     */
    host: string;
    /**
     * Port, when `host` is a bare name. `path` must be set too.
     */
    port?: number | string;
    /**
     * Path of the endpoint, when `host` is a bare name or a Unix socket.
     */
    path?: string;
  } | null;
  /**
   * A remote MCP server with the older HTTP+SSE transport (revision 2024-11-05).
   */
  sse?: {
    /**
     * URL of the event stream (`https://host/sse`), a host name together with `port` and `path`, or a Unix socket (`unix:/path/of/socket`), to which `path` can be added.
     */
    host: string;
    /**
     * Port, when `host` is a bare name. `path` must be set too.
     */
    port?: number | string;
    /**
     * Path of the endpoint, when `host` is a bare name or a Unix socket.
     */
    path?: string;
  } | null;
  /**
   * An HTTP API, described by an OpenAPI document. Each operation becomes a tool, whose arguments are grouped as `path`, `query`, `header`, `cookie` and `body`. A path in `host` or `path` replaces that of the document's `servers`.
   */
  openapi?: {
    /**
     * OpenAPI document (3.0 or 3.1): `file`, `url`, or the document itself, in which `$ref` is written `$$ref`. References to other documents are not followed.
     */
    schema:
      | string
      | {
          /**
           * File with the document, in JSON or YAML.
           */
          file: string;
        }
      | {
          /**
           * URL of the document.
           */
          url: string;
        }
      | {
          /**
           * Version of an inline document.
           */
          openapi: string;
          [k: string]: unknown;
        };
    /**
     * URL of the API (`https://api.example.com`), a host name together with `port` and `path`, or a Unix socket (`unix:/path/of/socket`), to which `path` can be added.
     */
    host: string;
    /**
     * Port, when `host` is a bare name. `path` must be set too.
     */
    port?: number | string;
    /**
     * Path of the endpoint, when `host` is a bare name or a Unix socket.
     */
    path?: string;
    /**
     * Headers of every request to the API, such as its key. Callers cannot replace them.
     */
    headers?: {
      [k: string]: string;
    } | null;
  } | null;
  /**
   * How the gateway connects to the server. For targets that are reached over HTTP.
   */
  policies?: {
    backendTLS?: BackendTLS;
    /**
     * Credential for the server, instead of that of the client and of the route's `backendAuth`. The client's `Authorization` header is never sent then.
     */
    backendAuth?: {
      key?: Key2;
      passthrough?: Passthrough;
      jwtSign?: JwtSign;
      oauthTokenExchange?: OauthTokenExchange;
      crossAppAccess?: CrossAppAccess;
      aws?: Aws;
      gcp?: Gcp;
      azure?: Azure;
      credentials?: Credentials;
      /**
       * Each user signs in at the server, which then gets the token of that user. Needs `config.mcp.signIn`, and users whom a policy of the route authenticates.
       */
      oauth?: {
        /**
         * Id of the gateway at the authorization server, where its redirect URI is registered: `<config.mcp.signIn.url>/callback/<name of the target>`. Default: a document that the page serves, if the server fetches such documents; otherwise the gateway registers itself (RFC 7591).
         */
        clientId?: string;
        clientSecret?: ClientSecret;
        /**
         * Scopes to request. Default: those that the server asks for.
         */
        scopes?: string[];
        /**
         * Issuer of the authorization server. Default: the one that the metadata of the server names (RFC 9728).
         */
        authorizationServer?: string;
      } | null;
    } | null;
    /**
     * Changes headers of requests to the server, after `transformations`.
     */
    requestHeaderModifier?: {
      /**
       * Headers to add; existing headers of the same name are kept.
       */
      add?: {
        [k: string]: string;
      } | null;
      /**
       * Headers to set; existing headers of the same name are replaced.
       */
      set?: {
        [k: string]: string;
      } | null;
      /**
       * Headers to remove, after `add` and `set`.
       */
      remove?: string[];
    } | null;
    /**
     * Computes headers of requests to the server.
     */
    transformations?: {
      /**
       * Changes the headers.
       */
      request?: {
        /**
         * Headers to set, as CEL expressions over the request of the client. A header whose expression fails is removed.
         */
        set?: {
          [k: string]: string;
        } | null;
        /**
         * Headers to add, as CEL expressions; existing headers of the same name are kept, unless the expression fails.
         */
        add?: {
          [k: string]: string;
        } | null;
        /**
         * Headers to remove, after `add` and `set`.
         */
        remove?: string[];
      } | null;
    } | null;
  } | null;
  /**
   * Tools of this target that clients see, and how. A tool that is left out fails like an unknown one. Rules, logs and metrics use the name that the target uses.
   */
  tools?: {
    /**
     * Names of the tools to offer; `*` matches any characters. Default: all.
     *
     * @minItems 1
     */
    include?: string[];
    /**
     * Names of tools to leave out, also if `include` has them; `*` matches any characters.
     */
    exclude?: string[];
    /**
     * New names of tools, by the name that the target uses. The old name is then unknown; a tool that already has the new name is left out.
     */
    rename?: {
      [k: string]: string;
    } | null;
    /**
     * Texts that replace the descriptions of tools, by the name that the target uses.
     */
    descriptions?: {
      [k: string]: string;
    } | null;
    /**
     * Estimated tokens (four bytes each) of text that a result may have: for all tools, or by name of the tool, in which `*` matches any characters; an exact name counts before a pattern, and a longer pattern before a shorter one. A longer result is cut, and clients read the rest as a resource, in parts of this size, until their session ends. Structured content over the limit is removed, so these tools are listed without `outputSchema`. Default: no limit.
     */
    maxResultTokens?:
      | (number | string)
      | {
          [k: string]: number | string;
        };
  } | null;
}[];
/**
 * Whether clients get sessions. `stateless`: each request runs in a session at the targets of its own, which ends with it, so any process can answer it; servers can send neither requests nor messages outside a response, and one process of a stdio target serves all requests. Clients of revision 2026-07-28 never have sessions.
 */
export type StatefulMode = 'stateful' | 'stateless';
/**
 * Pins each tool when it is listed for the first time: title, description, schemas and annotations. `warn`: a later change is logged and counted. `enforce`: the tool is also hidden and calls to it are refused, until its entry is deleted from the file of the pins.
 */
export type ToolPinning =
  | ('off' | 'warn' | 'enforce')
  | {
      /**
       * What happens to a tool that has changed.
       */
      mode: 'off' | 'warn' | 'enforce';
      /**
       * File of the pins, relative to the folder of the configuration. Created with its folder if it is missing.
       */
      file?: string;
    };
/**
 * Replaces the list of tools by `search_tools`, which finds tools by words, and `call_tool`, which calls one of them: for more tools than fit into the context of a model. Rules, guardrails, pins and limits apply as to direct calls, which stay possible.
 */
export type ToolSearch = {
  /**
   * Tools that stay in the list, by the names that clients see; `*` matches any characters.
   */
  pinned?: string[];
  /**
   * Tools that a search finds unless it asks for another number.
   */
  results?: number | string;
} | null;
/**
 * Sets of tools over all targets, each with a path of its own. What is not in a bundle is neither listed nor called there. Without `when`, the path of the route has everything: `mcpAuthorization` decides what callers may use.
 *
 * Items: A set of tools with a path of its own.
 */
export type Bundles = {
  /**
   * Name of the bundle, and the last segment of its path, as in `/mcp/NAME`.
   */
  name: string;
  /**
   * Tools of the bundle, by the names that clients see; `*` matches any characters. Default: all of its `targets`.
   *
   * @minItems 1
   */
  tools?: string[];
  /**
   * Names of targets whose prompts, resources and, unless `tools` says which, tools belong to the bundle; `*` matches any characters. Without it, the bundle has no prompts and resources.
   *
   * @minItems 1
   */
  targets?: string[];
  /**
   * CEL expression over the request: only callers for whom it is true have the bundle. They get it at the path of the route too; of several, the first. If a bundle has it, nothing is there for callers without a bundle.
   */
  when?: string;
  /**
   * What models are told about the bundle, instead of the instructions of its targets.
   */
  instructions?: string;
  /**
   * Texts that replace the descriptions of tools, by the names that clients see.
   */
  descriptions?: {
    [k: string]: string;
  } | null;
}[];
/**
 * LLM providers behind one OpenAI-compatible endpoint.
 */
export type Llm = {
  models: Models;
  virtualModels?: VirtualModels;
  providers?: Providers;
  guardrails?: Guardrails2;
  /**
   * `guardrails`: as `guardrails` of the backend, after them.
   */
  policies?: {
    guardrails?: Guardrails;
  } | null;
} | null;
/**
 * Calls that the provider supports, preferred first. Chats in other formats are translated to the first format that a translation exists for.
 *
 * @minItems 1
 */
export type Formats = {
  /**
   * Wire format of calls.
   */
  type:
    | 'completions'
    | 'messages'
    | 'responses'
    | 'textCompletions'
    | 'anthropicTokenCount'
    | 'embeddings'
    | 'rerank'
    | 'moderations'
    | 'speech'
    | 'transcriptions'
    | 'images'
    | 'realtime'
    | 'generateContent'
    | 'geminiCountTokens'
    | 'embedContent'
    | 'batchEmbedContents';
  /**
   * Path of these calls at the host of `baseUrl`. Default: that of the format, below `baseUrl`.
   */
  path?: string;
}[];
/**
 * Connection to the provider.
 */
export type Params = {
  /**
   * API key for the provider, or `{ file: … }`. Default: the client's own key is forwarded.
   */
  apiKey?:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
  /**
   * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
   */
  model?: string;
  /**
   * URL of the API with its version, such as `http://127.0.0.1:8000/v1`: everything before `/chat/completions`, `/messages` or `/responses`. Default: that of the provider.
   */
  baseUrl?: string;
  /**
   * AWS region of the `bedrock` provider, such as `us-east-1`.
   */
  awsRegion?: string;
  /**
   * Location of the `vertex` provider, such as `europe-west1`, `us`, `eu` or `global`. Default: `global`.
   */
  vertexRegion?: string;
  /**
   * Google Cloud project of the `vertex` provider.
   */
  vertexProject?: string;
  /**
   * Resource of the `azure` provider: the first part of its host name.
   */
  azureResourceName?: string;
  /**
   * Type of the Azure resource. `openAI`: `NAME.openai.azure.com`. `foundry`, also called `aiServices`: `NAME.services.ai.azure.com`. Default: `openAI`.
   */
  azureResourceType?: 'openAI' | 'foundry' | 'aiServices';
  azureApiVersion?: AzureApiVersion;
  /**
   * Calls of the Responses API: `pass` leaves them as they are, `translate` makes chat completions of them. Default: as the provider is known to be; some servers have none at all.
   */
  responses?: 'pass' | 'translate';
  /**
   * Calls of Anthropic's Messages API: `pass` leaves them as they are, `translate` makes chat completions of them. Default: as the provider is known to be; vLLM, Ollama and LM Studio have one.
   */
  messages?: 'pass' | 'translate';
  /**
   * Deduct an estimate of the tokens of the request from limits of tokens before the call, and not only all tokens after it: calls at the same time cannot exceed a limit by their requests.
   */
  tokenize?: boolean | string;
  /**
   * Project of a `foundry` resource. Default: the name of the resource.
   */
  azureProjectName?: string;
} | null;
/**
 * Version of the Azure OpenAI API: `v1`, `latest`, `preview` or a date such as `2024-10-21` or `2025-04-01-preview`, with which models are called by the name of their deployment. Default: `v1`.
 */
export type AzureApiVersion = string;
/**
 * Credential for the provider, if it is more than an `apiKey`. Default place of a key or token: the header of the provider.
 */
export type Auth = {
  key?: Key2;
  passthrough?: Passthrough;
  jwtSign?: JwtSign;
  oauthTokenExchange?: OauthTokenExchange;
  crossAppAccess?: CrossAppAccess;
  aws?: Aws;
  gcp?: Gcp;
  azure?: Azure;
  credentials?: Credentials;
} | null;
/**
 * Checks of requests and responses.
 */
export type Guardrails = {
  request?: Request2;
  response?: Response2;
  /**
   * `Disabled`: responses that are streams are not checked.
   */
  streaming?: 'Enabled' | 'Disabled';
} | null;
/**
 * Models that clients may request.
 *
 * @minItems 1
 *
 * Items: A model that clients may request.
 */
export type Models = {
  /**
   * Model names that this entry matches: one name, `*`, `prefix*` or `*suffix`. The most specific entry is used; among equally specific ones, the first whose `matches` hold.
   */
  name: string;
  /**
   * Conditions on the request, of which one must hold. Otherwise the next matching model is tried.
   *
   * @minItems 1
   */
  matches?: {
    /**
     * Conditions on headers.
     *
     * @minItems 1
     */
    headers: Headers[];
  }[];
  /**
   * Kind of provider, such as `oaiCompat` or `echo`, a `custom` description of one, or a reference to an entry of `llm.providers`.
   */
  provider:
    | 'oaiCompat'
    | 'openAI'
    | 'anthropic'
    | 'gemini'
    | 'vertex'
    | 'bedrock'
    | 'azure'
    | 'echo'
    | 'baseten'
    | 'cerebras'
    | 'cohere'
    | 'deepinfra'
    | 'deepseek'
    | 'fireworks'
    | 'groq'
    | 'huggingface'
    | 'mistral'
    | 'ollama'
    | 'openrouter'
    | 'togetherai'
    | 'xai'
    | (string & {})
    | {
        /**
         * Name of an entry of `llm.providers`.
         */
        reference: string;
      }
    | Provider;
  params?: Params;
  auth?: Auth;
  /**
   * Who may call this model, also as a target of a virtual model.
   */
  authorization?: {
    /**
     * CEL expressions, as in the policy `authorization`. A call that they reject gets 403.
     *
     * @minItems 1
     */
    rules: Rules2[];
  } | null;
  /**
   * `internal`: not listed and not available to clients, only to virtual models.
   */
  visibility?: 'public' | 'internal';
  /**
   * Request fields to set if the client did not set them. Those of chat completions are left out of calls of an API that does not have them.
   */
  defaults?: {
    [k: string]: _Schema1;
  } | null;
  /**
   * Request fields to always set.
   */
  overrides?: {
    [k: string]: _Schema1;
  } | null;
  /**
   * Request fields as CEL expressions over the client's request (`llmRequest`). They take precedence over `overrides`. An expression that fails removes its field.
   */
  transformation?: {
    [k: string]: string;
  } | null;
  /**
   * Like `transformation`, for fields of the request as it is sent: in the provider's format, after guardrails.
   */
  finalTransformation?: {
    [k: string]: string;
  } | null;
  /**
   * Changes to the headers sent to the provider.
   */
  requestHeaders?: {
    /**
     * Headers to add; existing headers of the same name are kept.
     */
    add?: {
      [k: string]: string;
    } | null;
    /**
     * Headers to set; existing headers of the same name are replaced.
     */
    set?: {
      [k: string]: string;
    } | null;
    /**
     * Headers to remove, after `add` and `set`.
     */
    remove?: string[];
  } | null;
  /**
   * Changes to the headers sent to the client.
   */
  responseHeaders?: {
    /**
     * Headers to add; existing headers of the same name are kept.
     */
    add?: {
      [k: string]: string;
    } | null;
    /**
     * Headers to set; existing headers of the same name are replaced.
     */
    set?: {
      [k: string]: string;
    } | null;
    /**
     * Headers to remove, after `add` and `set`.
     */
    remove?: string[];
  } | null;
  guardrails?: Guardrails;
  /**
   * Marks that the gateway adds to requests up to which the provider caches them: of Claude models (`anthropic`, `vertex`, `azure`, `bedrock`) and of Nova models on `bedrock`. A part of a request that the client has marked itself is left as it is.
   */
  promptCaching?: {
    /**
     * Cache the system prompt.
     */
    cacheSystem?: boolean | string;
    /**
     * Cache the conversation before its last message, from the second message on.
     */
    cacheMessages?: boolean | string;
    /**
     * Cache the definitions of tools.
     */
    cacheTools?: boolean | string;
    /**
     * Estimated tokens that the system prompt must have to be cached; `null` for any.
     */
    minTokens?: (number | string) | null;
    /**
     * Messages before the second to last one at which the cached conversation ends.
     */
    cacheMessageOffset?: number | string;
  } | null;
  /**
   * Answers that are given again to equal requests, without a call of the provider. Equal means the same bytes, with the same settings. Not for requests with `cache-control: no-store`.
   */
  cache?: {
    /**
     * How long an answer is given again. Default: 10m.
     */
    ttl?: '30s' | (string & {});
    /**
     * Who gets an answer again. `caller`: the one who got it first, by its key, token or user, or by the credentials that it sends. `shared`: everybody who may call the model.
     */
    scope?: 'caller' | 'shared';
    /**
     * Bytes of answers that each process keeps; those used least recently make room. With `config.shared`, answers are in Redis instead.
     */
    maxBytes?: number | string;
  } | null;
  /**
   * Additional endpoints forwarded to the provider of this model with its key, such as files, batches and stored responses. Tokens of batches count when their result is retrieved. A call without a model name uses the most specific model that allows its path; the client's key must allow that model. These endpoints read and change data of the whole provider account, not only the client's. `detect` allows every endpoint and translates none, with `opaque`, tokens are not counted either.
   */
  passthrough?:
    | {
        /**
         * Path of client requests. A trailing `/*` matches everything below. `/v1` may be omitted.
         */
        path: string;
        /**
         * Allowed methods.
         *
         * @minItems 1
         */
        methods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE')[];
      }[]
    | ('detect' | 'opaque');
  /**
   * What counts as a failure of the model. Used by virtual models with `failover`.
   */
  health?: {
    /**
     * CEL expression over the `response` (`code`, `headers`). A response for which it is true is a failure. Default: 5xx and 429 are failures. A missing response is always a failure.
     */
    unhealthyExpression?: string;
    /**
     * When the model is evicted for a while. Only applies to targets of `failover`.
     */
    eviction?: {
      /**
       * Duration of the first eviction. The second in a row lasts twice as long, the third three times, up to 1h. Default: the value of `Retry-After` or `x-ratelimit-reset…` in the failed response, else 3s.
       */
      duration?: '30s' | (string & {});
      /**
       * Consecutive failures that evict. Without this and `healthThreshold`, the first failure evicts.
       */
      consecutiveFailures?: number | string;
      /**
       * A failure evicts if the health is below this value. Health is the share of successful calls among about the last ten.
       */
      healthThreshold?: number | string;
      /**
       * Health after an eviction. Default: unchanged.
       */
      restoreHealth?: number | string;
    } | null;
  } | null;
  backendTLS?: BackendTLS;
}[];
/**
 * Names that resolve to one of several models. They take precedence over `models`.
 *
 * Items: A name that resolves to one of several models.
 */
export type VirtualModels = {
  /**
   * Names requested by clients: one name, `*`, `prefix*` or `*suffix`. The most specific one is used.
   */
  name: string;
  /**
   * How a model is selected.
   */
  routing: {
    /**
     * Selects one of several models at random, by weight.
     */
    weighted?: {
      /**
       * Models to choose from.
       *
       * @minItems 1
       */
      targets: {
        /**
         * Model name that matches an entry of `models`. A `*` in it stands for the text that the one in `name` of the virtual model matched.
         */
        model: string;
        /**
         * Relative frequency of the target; 0 disables it.
         */
        weight?: number | string;
      }[];
    } | null;
    /**
     * Uses the healthy models with the best priority. A failing model is evicted for a while (`health.eviction` of the model). Among models of the same priority, the faster of two random ones is used. A request that fails is sent to the next model, as long as the client has received nothing.
     */
    failover?: {
      /**
       * Models to choose from.
       *
       * @minItems 1
       */
      targets: {
        /**
         * Model name that matches an entry of `models`. A `*` in it stands for the text that the one in `name` of the virtual model matched.
         */
        model: string;
        /**
         * Targets with a higher number are used only if all targets with lower numbers fail.
         */
        priority?: number | string;
        /**
         * Relative frequency among the healthy targets of the same priority, which are then chosen at random by weight instead of by latency. Targets without it have none: they are used if no target with a weight is healthy.
         */
        weight?: number | string;
      }[];
    } | null;
    /**
     * Selects the first model whose condition holds.
     */
    conditional?: {
      /**
       * Models in the order in which they are tried.
       *
       * @minItems 1
       */
      targets: {
        /**
         * Model name that matches an entry of `models`. A `*` in it stands for the text that the one in `name` of the virtual model matched.
         */
        model: string;
        /**
         * CEL expression over the request (`llmRequest`). Without it, the target always matches.
         */
        when?: string;
      }[];
    } | null;
  };
}[];
/**
 * Providers shared by several models.
 *
 * Items: A provider shared by several models.
 */
export type Providers = {
  /**
   * Name for references from models.
   */
  name: string;
  /**
   * Kind of provider, or a `custom` description of one.
   */
  provider:
    | 'oaiCompat'
    | 'openAI'
    | 'anthropic'
    | 'gemini'
    | 'vertex'
    | 'bedrock'
    | 'azure'
    | 'echo'
    | 'baseten'
    | 'cerebras'
    | 'cohere'
    | 'deepinfra'
    | 'deepseek'
    | 'fireworks'
    | 'groq'
    | 'huggingface'
    | 'mistral'
    | 'ollama'
    | 'openrouter'
    | 'togetherai'
    | 'xai'
    | (string & {})
    | Provider;
  params?: Params;
  /**
   * Same as in a model; values of the model take precedence.
   */
  defaults?: {
    [k: string]: _Schema1;
  } | null;
  /**
   * Same as in a model; values of the model take precedence.
   */
  overrides?: {
    [k: string]: _Schema1;
  } | null;
}[];
/**
 * Guardrails for all models. The guardrails of a model run after them.
 */
export type Guardrails2 = {
  request?: Request2;
  response?: Response2;
  /**
   * `Disabled`: responses that are streams are not checked.
   */
  streaming?: 'Enabled' | 'Disabled';
} | null;
/**
 * Models of one provider, or of several in groups of priority. Every model name is accepted.
 */
export type Ai2 =
  | Ai3
  | {
      /**
       * Groups by descending priority. A call that fails is sent to the next provider.
       *
       * @minItems 1
       */
      groups: {
        /**
         * Providers of the same priority: healthy and fast ones are preferred.
         *
         * @minItems 1
         */
        providers: Ai3[];
      }[];
    };
/**
 * The server that a request names in `Host`; port 80 by default, or 443 if the request came over TLS. Clients can reach every host that the gateway reaches: restrict them with `hostnames` or `authorization`.
 */
export type Dynamic = {
  /**
   * CEL expression for the server, as `host:port`, instead of the one that the request names.
   */
  target?: string | null;
} | null;
/**
 * A service of AWS.
 */
export type Aws2 = {
  /**
   * An agent on Amazon Bedrock AgentCore. Requests are signed.
   */
  agentCore: {
    /**
     * ARN of its runtime. It names the region.
     */
    agentRuntimeArn: string;
    /**
     * Version or alias of the endpoint. Default: `DEFAULT`.
     */
    qualifier?: string | null;
  };
} | null;
/**
 * Backends of the route: one, or several that share requests by weight.
 */
export type Backends = {
  /**
   * Share of requests, among the weights of all backends of the route.
   */
  weight?: number | string;
  policies?: Policies5;
  mcp?: Mcp;
  llm?: Llm;
  ai?: Ai2;
  /**
   * Address of an HTTP service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
   */
  host?: string;
  dynamic?: Dynamic;
  aws?: Aws2;
  /**
   * One of the top-level `services`, whose endpoints the policy `inferenceRouting` picks.
   */
  service?: {
    /**
     * Namespace and host name of the service: `namespace/hostname`.
     */
    name: string;
    /**
     * One of its `ports`.
     */
    port: number | string;
  } | null;
  /**
   * Name of one of the top-level `backends`, which all routes that name it share.
   */
  backend?: string;
  /**
   * Name of one of `routeGroups`: its routes decide, with the policies of this route unless they have their own.
   */
  routeGroup?: string;
}[];
/**
 * Policies of the connections to the service.
 */
export type Policies6 = {
  backendTLS?: BackendTLS;
} | null;
/**
 * Services that share connections by weight.
 *
 * @minItems 1
 */
export type Backends2 = {
  /**
   * Share of connections, among the weights of all backends.
   */
  weight?: number | string;
  /**
   * Address of the service: `host:port`.
   */
  host?: string;
  /**
   * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
   */
  backend?: string;
  /**
   * Instead of `host`: the server that the client names with TLS (SNI), at the port that it has connected to. Clients can reach every host that the gateway reaches: restrict them with `hostnames`.
   */
  dynamic?: {} | null;
  policies?: Policies6;
}[];

/**
 * Configuration of agctl.
 */
export interface GatewayConfig {
  /**
   * Settings of the process, read at startup.
   */
  config?: {
    /**
     * Address of the admin server: `ip:port`, `localhost:port` for both loopback addresses, `unix:/path`, or `off`.
     */
    adminAddr?: '127.0.0.1:15000' | 'unix:/run/agctl/admin.sock' | 'off' | (string & {}) | (false | string);
    /**
     * Host names of the admin server, in addition to `localhost` and IP addresses. Requests with other Host headers are rejected, which protects against DNS rebinding by web pages.
     */
    adminHosts?: string[];
    /**
     * Roles of the callers of the admin server and its pages. Without it, all callers that are let in may do everything. With it, a caller has the highest role that one of its names gives, and callers without a role are refused.
     */
    adminRoles?: {
      /**
       * CEL expression for the names of a caller that a policy of `ui` has authenticated: a string or a list of strings, such as `jwt.groups`, `basicAuth.username` or `apiKey.role`.
       */
      claim?: 'jwt.groups' | 'jwt.realm_access.roles' | 'basicAuth.username' | (string & {});
      /**
       * Names that may see the pages and figures, but no contents of requests and no configuration.
       */
      viewer?: string[];
      /**
       * Names that may also see contents and the configuration, trace, change log levels, profile, send requests and stop the gateway.
       */
      operator?: string[];
      /**
       * Names that may also change the configuration, virtual keys and sign-ins.
       */
      editor?: string[];
      /**
       * A proxy in front of the address of the admin server that signs people in and replaces both headers in all requests.
       */
      proxy?: {
        /**
         * Addresses of the proxy, or its network, as in `10.0.0.0/8`. Headers of connections from elsewhere count for nothing.
         *
         * @minItems 1
         */
        addresses: string[];
        /**
         * Header with the name of the user.
         */
        user?: string;
        /**
         * Header with the names of the user.
         */
        groups?: string;
        /**
         * Character between two names in that header, which no name contains.
         */
        separator?: string;
      } | null;
      /**
       * Role of programs and people of this machine that connect to the admin server themselves, through no proxy: everybody who can use the machine. A unix socket, which only the user of the gateway can open, always has the role `editor`.
       */
      local?: 'none' | 'viewer' | 'operator' | 'editor';
    } | null;
    /**
     * Number of processes that handle requests, or `auto` for one per core that the process may use, as far as the memory of its container suffices (192 MiB each). All share ports, sessions, rate limits, metrics and the admin server. `maxSessions` and `maxChildren` are divided among them. 1 by default: requests are handled without a second process.
     */
    workers?: (number | string) | 'auto';
    /**
     * Upstream's name for `workers`.
     */
    workerThreads?: (number | string) | 'auto' | string;
    /**
     * Logging.
     */
    logging?: {
      /**
       * Least severe messages to log: `error`, `warn`, `info`, `debug`, `trace` or `off`. Also levels per module, as in `info,mcp=debug,request=off`, where `request` is the access log; the environment variable RUST_LOG overrides it.
       */
      level?: string | string[];
      /**
       * Format of log and access-log lines.
       */
      format?: 'text' | 'json';
    } | null;
    /**
     * Address of the metrics server (`/metrics`); all addresses of the machine, port 15020, by default.
     */
    statsAddr?: '127.0.0.1:15000' | 'unix:/run/agctl/admin.sock' | 'off' | (string & {}) | (false | string);
    /**
     * Address of the readiness server (`/healthz/ready`, `/healthz/live`, `/healthz/startup`); all addresses of the machine, port 15021, by default.
     */
    readinessAddr?:
      '127.0.0.1:15000' | 'unix:/run/agctl/admin.sock' | 'off' | (string & {}) | (false | string);
    /**
     * The metrics.
     */
    metrics?: {
      /**
       * First part of the names of all metrics, such as `agentgateway_`.
       */
      prefix?: string;
      /**
       * Names of metrics to omit, such as `gw_requests_total` or `requests`.
       */
      remove?: string[];
      /**
       * Labels.
       */
      fields?: {
        /**
         * Labels to add to request metrics, as CEL expressions. A result that is not a string becomes `unknown`. Use expressions with few distinct values: each combination of labels is a separate series.
         */
        add?: {
          [k: string]: string;
        } | null;
      } | null;
      /**
       * Also sends the metrics to an OTLP collector, from the start of the process until its end.
       */
      otlp?: {
        /**
         * Address of the collector: `host:port`, a URL without a path, or `unix:/path/of/socket`.
         */
        host: string;
        /**
         * Protocol of the collector. `grpc` requires the packages `@grpc/grpc-js` and `@grpc/proto-loader`, installed next to agctl.
         */
        protocol?: 'grpc' | 'http';
        /**
         * URL path of the collector. Only for the protocol `http`.
         */
        path?: string;
        policies?: Policies;
        /**
         * How often the metrics are sent.
         */
        interval?: '30s' | (string & {});
      } | null;
    } | null;
    /**
     * Form of the histograms of the metrics: `classic` ones have fixed buckets, `native` ones exponential buckets, exposed only in the Prometheus protobuf format; the text format then has their sum and count.
     */
    histograms?: 'classic' | 'native' | 'both';
    /**
     * Traces exported over OTLP.
     */
    tracing?: {
      /**
       * URL of an OTLP collector. Without it, no traces are exported.
       */
      otlpEndpoint?: string;
      /**
       * Protocol of the collector. `grpc` requires the package `@opentelemetry/exporter-trace-otlp-grpc`, installed next to agctl.
       */
      otlpProtocol?: 'grpc' | 'http';
      /**
       * URL path of the collector. Only for the protocol `http`.
       */
      path?: string;
      /**
       * Headers of each export request. Only for the protocol `http`.
       */
      headers?: {
        [k: string]: string;
      } | null;
      randomSampling?: RandomSampling;
      clientSampling?: ClientSampling;
      /**
       * Attributes.
       */
      fields?: {
        /**
         * Attributes to add to the span of each request, as CEL expressions.
         */
        add?: {
          [k: string]: string;
        } | null;
        /**
         * Attributes to leave out, by their own names or those of the access log.
         */
        remove?: string[];
      } | null;
    } | null;
    /**
     * MCP session ids.
     */
    session?: {
      /**
       * Key for the encryption of session ids. Processes with the same key can continue each other's sessions.
       */
      key?: string;
    } | null;
    /**
     * Redis or Valkey, which several gateways with the same configuration share: the counts of `localRateLimit`, MCP sessions, answers of `cache`, and which batches of models were counted.
     */
    shared?: {
      /**
       * URL of a Redis (6.2 or later) or Valkey server: `redis://`, or `rediss://` with TLS, then `user:password@` if needed, host, port (6379 by default) and `/` with the number of the database (0 by default).
       */
      redis: 'rediss://:$REDIS_PASSWORD@redis.example.com:6379/0' | (string & {});
      /**
       * TLS of the connections to the server. Files are read when agctl starts.
       */
      tls?: {
        /**
         * File with the certificates (PEM) of the authorities that may issue the certificate of the server, instead of the public ones.
         */
        root?: string;
        /**
         * File with the client certificate (PEM). `key` must be set too.
         */
        cert?: string;
        /**
         * File with the private key (PEM) of the client certificate.
         */
        key?: string;
        /**
         * Name that the certificate must be for, also sent as SNI. Default: the host of the address.
         */
        hostname?: string;
        /**
         * Accept any certificate. For tests only: anyone on the network can pose as the server.
         */
        insecure?: boolean | string;
        /**
         * Accept a certificate for another host name, if a trusted authority issued it.
         */
        insecureHost?: boolean | string;
      } | null;
      /**
       * Redis Sentinel, which names the primary server at each connection. The host in `redis` is then the name of the primary, such as `redis://:password@mymaster`.
       */
      sentinel?: {
        /**
         * `host:port` of each Sentinel (port 26379 by default).
         *
         * @minItems 1
         */
        servers: string[];
        /**
         * Password of the Sentinels, if they have one. With `rediss:`, they are connected to with TLS.
         */
        password?: string;
      } | null;
      /**
       * First part of all keys. Gateways that share a server but not their limits have different ones.
       */
      prefix?: string;
      /**
       * How long a request waits for the server. Then `failureMode` applies, without waiting, until the server answers again.
       */
      timeout?: '30s' | (string & {});
      /**
       * What happens while the server is not available.
       */
      failureMode?: {
        /**
         * Requests with `localRateLimit`: `local` counts them in this gateway only, `failClosed` rejects them with status 503.
         */
        rateLimits?: 'local' | 'failClosed';
        /**
         * Requests of MCP sessions: `failOpen` continues them by what their ids contain, also those that have ended; `failClosed` rejects them with status 503. Those of browsers (`oidc`) likewise.
         */
        sessions?: 'failOpen' | 'failClosed';
      } | null;
    } | null;
    /**
     * MCP sessions, and sign-in of users at MCP servers.
     */
    mcp?: {
      /**
       * Time without a request after which a session ends.
       */
      sessionTtl?: '30s' | (string & {});
      /**
       * Maximum number of sessions; further ones are rejected with status 503.
       */
      maxSessions?: number | string;
      /**
       * Maximum number of child processes of stdio targets. At the limit, the session that has been idle for the longest time is ended; if none is idle, new sessions are rejected with status 503.
       */
      maxChildren?: number | string;
      /**
       * Sign-in of users at MCP servers, for targets with `backendAuth.oauth`. Needs `config.database` and `config.session.key`, with which tokens are encrypted.
       */
      signIn?: {
        /**
         * URL of the page on which users sign in, such as `https://gateway.example.com/sign-in`. A route with the policy `mcpSignIn` answers it and what is below it; redirect URIs are below `<url>/callback`.
         */
        url: string;
        /**
         * How the page knows that its user is the one whose client got the link. `authenticated`: a policy of its route has authenticated the same user (`oidc`, `basicAuth`). `code`: the user enters a code that the client shows beside the link; for clients with API keys. Whoever can make another person enter a code gets tokens of that person.
         */
        users?: 'authenticated' | 'code';
      } | null;
    } | null;
    /**
     * Validation of request paths and headers before routing and policies, and who the client is.
     */
    http?: {
      /**
       * Handling of paths that servers interpret differently. `merge` merges repeated slashes and rejects encoded slashes (except in the id of `/v1/models/{id}`) and backslashes with status 400; `reject` also rejects repeated slashes and `;` (also `%3B`), which services need that ignore path parameters, as many in Java do: `/admin;x=1` is another path than `/admin` for routes and rules; `keep` forwards all of these unchanged. Dot segments and control characters are always rejected.
       */
      pathNormalization?: 'merge' | 'reject' | 'keep';
      /**
       * Handling of request headers with an underscore in their name, which some servers treat like a hyphen: `drop` removes them before any policy, `reject` rejects the request with status 400, `allow` keeps them.
       */
      headersWithUnderscores?: 'drop' | 'reject' | 'allow';
      /**
       * Handling of request headers with which some servers replace the method or path that rules have checked: `X-HTTP-Method-Override`, `X-HTTP-Method`, `X-Method-Override`, `X-Original-Method`, `X-Original-URL`, `X-Rewrite-URL` and `_method`. `drop` (default) removes them before any policy, `reject` rejects the request with status 400, `allow` keeps them, but not for LLM providers and MCP servers.
       */
      overrideHeaders?: 'drop' | 'reject' | 'allow';
      /**
       * Addresses of proxies in front of the gateway. For connections from them, the client is the last address in `X-Forwarded-For` that is not one of them: in `source.address`, rate limits and logs. By default, no header changes the client.
       */
      trustedProxies?: string[];
    } | null;
    /**
     * Price catalogs, for the cost of LLM calls. Entries of later catalogs replace those of earlier ones.
     */
    modelCatalog?: (
      | {
          /**
           * JSON file that contains the catalog.
           */
          file: string;
        }
      | {
          /**
           * The catalog, as JSON text or an object.
           */
          inline:
            | string
            | {
                /**
                 * Models by name of the provider in telemetry, such as `openai`.
                 */
                providers: {
                  [k: string]: {
                    /**
                     * Prices by name of the model, which may have a `*` at its beginning, its end or both.
                     */
                    models: {
                      [k: string]: {
                        /**
                         * Rates in USD per million tokens, as strings with at most six decimals.
                         */
                        rates?: {
                          /**
                           * Input tokens that have no rate of their own.
                           */
                          input?: string;
                          /**
                           * Output tokens that have no rate of their own.
                           */
                          output?: string;
                          /**
                           * Input tokens read from a cache.
                           */
                          cacheRead?: string;
                          /**
                           * Input tokens written to a cache.
                           */
                          cacheWrite?: string;
                          /**
                           * Input tokens written to a cache for an hour.
                           */
                          cacheWrite1h?: string;
                          /**
                           * Output tokens of reasoning. Default: `output`.
                           */
                          reasoning?: string;
                          /**
                           * Input tokens of recordings. Default: `input`.
                           */
                          inputAudio?: string;
                          /**
                           * Output tokens of speech. Default: `output`.
                           */
                          outputAudio?: string;
                        } | null;
                        /**
                         * Rates of calls with a long input, in ascending order of `contextOver`.
                         */
                        tiers?: {
                          /**
                           * Input tokens over which the tier applies.
                           */
                          contextOver: number | string;
                          /**
                           * Rates that replace those of the model.
                           */
                          rates: {
                            /**
                             * Input tokens that have no rate of their own.
                             */
                            input?: string;
                            /**
                             * Output tokens that have no rate of their own.
                             */
                            output?: string;
                            /**
                             * Input tokens read from a cache.
                             */
                            cacheRead?: string;
                            /**
                             * Input tokens written to a cache.
                             */
                            cacheWrite?: string;
                            /**
                             * Input tokens written to a cache for an hour.
                             */
                            cacheWrite1h?: string;
                            /**
                             * Output tokens of reasoning. Default: `output`.
                             */
                            reasoning?: string;
                            /**
                             * Input tokens of recordings. Default: `input`.
                             */
                            inputAudio?: string;
                            /**
                             * Output tokens of speech. Default: `output`.
                             */
                            outputAudio?: string;
                          };
                        }[];
                        /**
                         * Rates of requests in batches, whatever their length. Default of each: half of the others.
                         */
                        batch?: {
                          /**
                           * Input tokens that have no rate of their own.
                           */
                          input?: string;
                          /**
                           * Output tokens that have no rate of their own.
                           */
                          output?: string;
                          /**
                           * Input tokens read from a cache.
                           */
                          cacheRead?: string;
                          /**
                           * Input tokens written to a cache.
                           */
                          cacheWrite?: string;
                          /**
                           * Input tokens written to a cache for an hour.
                           */
                          cacheWrite1h?: string;
                          /**
                           * Output tokens of reasoning. Default: `output`.
                           */
                          reasoning?: string;
                          /**
                           * Input tokens of recordings. Default: `input`.
                           */
                          inputAudio?: string;
                          /**
                           * Output tokens of speech. Default: `output`.
                           */
                          outputAudio?: string;
                        } | null;
                        /**
                         * Labels for people, without effect on prices.
                         */
                        tags?: string[];
                      };
                    };
                  };
                };
              };
        }
    )[];
    /**
     * Database for the record of requests, in which `agctl usage` and the admin pages search.
     */
    database?: {
      /**
       * The database: `sqlite://./data.db`, a file relative to the configuration file, which is created (with `?mode=rw` it must exist); `sqlite:///folder/data.db`; or `postgres://user:password@host:5432/database`. Several processes may use one file on a local disk, and several machines one PostgreSQL.
       */
      url: string;
      /**
       * Maximum number of connections to PostgreSQL, of each process. A SQLite file has one for writing and one for reading.
       */
      maxConnections?: number | string;
      /**
       * How many copies from before updates are kept beside a SQLite file. One is made before an update of agctl changes its tables; 0 makes none. Copies of `agctl database` are not counted, and never removed. For PostgreSQL, make one with `pg_dump` before an update.
       */
      backups?: number | string;
    } | null;
    /**
     * Where it is kept who has changed what through the admin server: in the log, in `config.database` and in a file.
     */
    audit?: {
      /**
       * File to which each event is appended as a line of JSON, relative to this file. It is created with mode 0600, and opened anew for each event, so that it can be rotated.
       */
      file?: string;
      /**
       * Age at which events are deleted from `config.database`.
       */
      retention?: '30s' | (string & {});
    } | null;
    /**
     * Where changes of the configuration are stored.
     */
    storage?: {
      /**
       * What the admin pages may change. `file`: virtual keys, and the configuration file with `agctl serve --ui-write`. `readOnly`: neither; the environment variable UI_READ_ONLY with any value but `false` does the same.
       */
      mode?: 'file' | 'readOnly';
    } | null;
    /**
     * Headers whose values traces do not show, besides those with credentials, which are recognized by their names and by the policies that read them.
     */
    sensitiveHeaders?: string[];
    /**
     * How long open requests may take to finish after a shutdown has started.
     */
    connectionTerminationDeadline?: '30s' | (string & {});
  } | null;
  /**
   * Settings for every connection and request, before routing and after the response.
   */
  frontendPolicies?: {
    /**
     * The access log, and the record of requests.
     */
    accessLog?: {
      /**
       * Fields to add to each line, as CEL expressions. A field whose expression fails or evaluates to null is omitted. A field with the name of a built-in field replaces it.
       */
      add?: {
        [k: string]: string;
      } | null;
      /**
       * Names of fields to omit.
       */
      remove?: string[];
      /**
       * CEL expression: only requests for which it is true are logged.
       */
      filter?: string;
      /**
       * The record of requests in `config.database`.
       */
      database?: {
        /**
         * What is kept of each request: `metadata` (time, caller, route, model, tool, status, tokens, cost, without contents); `full`, also prompts, completions, and arguments and results of tools; `none`, only sums per hour for `agctl usage`.
         */
        payloads?: 'none' | 'metadata' | 'full';
        /**
         * `payloads` for LLM calls only (upstream's name).
         */
        llm?: 'metadata' | 'full';
        /**
         * Fields to add to each record, as CEL expressions. `key`, `user` and `group` replace who the request is attributed to: the name of the API key, the subject of the token or user of the key, and the group or team of the key. `session` replaces the session of MCP.
         */
        add?: {
          [k: string]: string;
        } | null;
        /**
         * What is replaced before anything is written. Secrets of this file, and credentials in a common notation, are always replaced.
         */
        redaction?: {
          /**
           * What is replaced in every text, as in guardrails: `{ builtin: … }` or `{ pattern: … }`. Card numbers, API keys, IBANs and U.S. Social Security numbers by default.
           */
          rules?: Rules[];
        } | null;
        /**
         * Age at which records and sums are deleted.
         */
        retention?: '30s' | (string & {});
        /**
         * What happens to requests while the database fails: `allow`, they go on, and are recorded later or, if too many wait, not at all, which is logged and counted; `deny`, they are answered with status 503.
         */
        failureMode?: 'allow' | 'deny';
      } | null;
      /**
       * Also sends each line of the access log to an OTLP collector, as a log record.
       */
      otlp?: {
        /**
         * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
         */
        host?: string;
        /**
         * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
         */
        backend?: string;
        /**
         * Protocol of the collector. `grpc` requires the packages `@grpc/grpc-js` and `@grpc/proto-loader`, installed next to agctl.
         */
        protocol?: 'grpc' | 'http';
        /**
         * URL path of the collector. Only for the protocol `http`.
         */
        path?: string;
        policies?: Policies;
        /**
         * CEL expression: only requests for which it is true are exported. That of the access log does not apply.
         */
        filter?: string;
        /**
         * Attributes, instead of `add` and `remove` of the access log.
         */
        fields?: {
          /**
           * Attributes to add to each record, as CEL expressions.
           */
          add?: {
            [k: string]: string;
          } | null;
          /**
           * Names of attributes to omit.
           */
          remove?: string[];
        } | null;
      } | null;
    } | null;
    /**
     * Traces exported over OTLP. Replaces the deprecated `config.tracing`.
     */
    tracing?: {
      /**
       * Address of an OTLP collector: `host:port`, or a URL.
       */
      host: string;
      /**
       * Protocol of the collector. `grpc` requires the package `@opentelemetry/exporter-trace-otlp-grpc`, installed next to agctl.
       */
      protocol?: 'grpc' | 'http';
      /**
       * URL path of the collector. Only for the protocol `http`.
       */
      path?: string;
      randomSampling?: RandomSampling;
      clientSampling?: ClientSampling;
      /**
       * Attributes to add to the span of each request, as CEL expressions.
       */
      attributes?: {
        [k: string]: string;
      } | null;
      /**
       * Resource attributes, as strings. They override `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`.
       */
      resources?: {
        [k: string]: string;
      } | null;
      /**
       * Attributes to leave out, by their own names or those of the access log.
       */
      remove?: string[];
      /**
       * CEL expression: only requests for which it is true are exported.
       */
      filter?: string;
    } | null;
    /**
     * Limits of HTTP, and of its connections.
     */
    http?: {
      /**
       * Maximum size in bytes of a body that expressions can read; default: 2097152. Of a larger body, only the beginning is available (`bodyPrefix`). A call to an `llm` backend with a larger body is rejected with status 413; if unset, the limit of these calls is 33554432, unless an expression reads the request body.
       */
      maxBufferSize?: number | string;
      /**
       * Maximum number of header lines of an HTTP/1.1 request, 100 by default; more are answered with status 431.
       */
      http1MaxHeaders?: number | string;
      /**
       * How long an HTTP/1.1 connection may be idle between requests; 65 s by default.
       */
      http1IdleTimeout?: '30s' | (string & {});
      /**
       * Bytes that a client may send of one HTTP/2 request before they are read; 65535 by default.
       */
      http2WindowSize?: number | string;
      /**
       * Bytes that a client may send on an HTTP/2 connection before they are read; 65535 by default.
       */
      http2ConnectionWindowSize?: number | string;
      /**
       * Maximum size of an HTTP/2 frame from clients; 16384 by default.
       */
      http2FrameSize?: number | string;
      /**
       * Maximum size of the headers of an HTTP/2 request in bytes, 16384 by default; larger ones are answered with status 431.
       */
      http2MaxHeaderSize?: number | string;
      /**
       * Interval of pings on HTTP/2 connections; none by default.
       */
      http2KeepaliveInterval?: '30s' | (string & {});
      /**
       * How long a client may take to answer a ping before its connection is closed; 20 s by default.
       */
      http2KeepaliveTimeout?: '30s' | (string & {});
      /**
       * Age at which a connection is closed, after its open requests; it may get older with requests that take longer. No limit by default.
       */
      maxConnectionDuration?: '30s' | (string & {});
    } | null;
    /**
     * TLS of all listeners that have `tls`.
     */
    tls?: {
      /**
       * How long the TLS handshake of a client may take; 15 s by default.
       */
      handshakeTimeout?: '30s' | (string & {});
      /**
       * Protocols that clients of `HTTPS` may select, the preferred one first; both by default.
       *
       * @minItems 1
       */
      alpn?: ('h2' | 'http/1.1')[];
      /**
       * Default of `tls.minTLSVersion` of listeners.
       */
      minVersion?: 'TLS_V1_2' | 'TLS_V1_3';
      /**
       * Default of `tls.maxTLSVersion` of listeners.
       */
      maxVersion?: 'TLS_V1_2' | 'TLS_V1_3';
      /**
       * Default of `tls.cipherSuites` of listeners.
       *
       * @minItems 1
       */
      cipherSuites?: string[];
      /**
       * Default of `tls.keyExchangeGroups` of listeners.
       *
       * @minItems 1
       */
      keyExchangeGroups?: ('X25519' | 'P-256' | 'P-384' | 'X25519_MLKEM768')[];
    } | null;
    /**
     * TCP connections of clients.
     */
    tcp?: {
      /**
       * Probes that find connections whose client is gone.
       */
      keepalives: {
        /**
         * Send probes on idle connections.
         */
        enabled?: boolean | string;
        /**
         * Idle time before the first probe.
         */
        time?: '30s' | (string & {});
      };
    } | null;
    /**
     * Closes connections of clients before anything is read from them, unless the rules allow them.
     */
    networkAuthorization?: {
      /**
       * CEL expressions on `source`, one of which must be true. With the forms `allow:`, `deny:` and `require:`, a connection is closed if any `deny` rule is true or cannot be evaluated; it needs all `require` rules and, if there are any, one of the `allow` rules.
       *
       * @minItems 1
       */
      rules: Rules2[];
    } | null;
    /**
     * Asks a service about each connection, after TLS and before anything else is read, and closes those that it does not allow. At most 1000 wait for it; further ones are closed.
     */
    networkExtAuthz?: {
      /**
       * Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
       */
      host?: string;
      /**
       * Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.
       */
      backend?: string;
      /**
       * Protocol of the service; gRPC by default.
       */
      protocol?: {
        /**
         * Call the service with Envoy's protocol `envoy.service.auth.v3` (gRPC): it gets `source` and `destination`.
         */
        grpc?: {
          /**
           * Fixed values for the service (`context_extensions`).
           */
          context?: {
            [k: string]: string;
          } | null;
        } | null;
        /**
         * Call the service over HTTP, with GET. A status from 200 to 299 allows the connection.
         */
        http?: {
          /**
           * CEL expression for the path and query of the call; `/` by default.
           */
          path?: string;
          /**
           * Headers for the service, as CEL expressions, such as `source.address`: it gets nothing else of the connection. One that fails is omitted.
           */
          addRequestHeaders?: {
            [k: string]: string;
          } | null;
        } | null;
      } | null;
      /**
       * Uses an outcome for all connections with the same key. Failures of the service are not cached.
       */
      cache?: {
        /**
         * CEL expressions for everything that the service decides by. Requests for which one of them fails are not cached.
         *
         * @minItems 1
         * @maxItems 16
         */
        key: string[];
        /**
         * How long an outcome is used: a duration such as `5m`, or a CEL expression for a duration or for the time when it expires.
         */
        ttl: string;
        /**
         * Outcomes that are kept; beyond that, the least recently used is removed.
         */
        maxEntries?: number | string;
      } | null;
      policies?: Policies;
      /**
       * What happens if the service cannot be reached or takes longer than 2 s.
       */
      failureMode?: 'deny' | 'allow';
    } | null;
  } | null;
  /**
   * Gateways by name.
   */
  gateways?: {
    /**
     * A port that the gateway listens on. Policies written here run before routing.
     */
    [k: string]: {
      /**
       * Port to listen on. 0 selects any free port.
       */
      port: number | string;
      /**
       * Protocol of the gateway; `HTTPS` if `tls` is set, otherwise `HTTP`.
       */
      protocol?: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | 'HBONE';
      tls?: Tls;
      /**
       * IP address to listen on; all addresses of the machine by default.
       */
      address?: string;
      /**
       * Listeners for different hosts. By default, the gateway is one listener for all hosts.
       *
       * @minItems 1
       *
       * Items: One of several listeners of a port, for some of its hosts.
       */
      listeners?: {
        /**
         * Name of the listener; `listenerN` by default.
         */
        name?: string;
        /**
         * Host name that this listener serves, `*.example.com` for all names below it; any host by default. The most specific listener of a port handles a request.
         */
        hostname?: string;
        /**
         * Protocol of the listener; `HTTPS` if `tls` is set, otherwise `HTTP`.
         */
        protocol?: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | 'HBONE';
        tls?: Tls;
        cors?: Cors;
        oidc?: Oidc;
        jwtAuth?: JwtAuth;
        basicAuth?: BasicAuth;
        apiKey?: ApiKey;
        extAuthz?: ExtAuthz;
        authorization?: Authorization;
        budgets?: Budgets;
        extProc?: ExtProc;
        modules?: Modules;
        transformations?: Transformations;
      }[];
      cors?: Cors;
      oidc?: Oidc;
      jwtAuth?: JwtAuth;
      basicAuth?: BasicAuth;
      apiKey?: ApiKey;
      extAuthz?: ExtAuthz;
      authorization?: Authorization;
      budgets?: Budgets;
      extProc?: ExtProc;
      modules?: Modules;
      transformations?: Transformations;
      /**
       * Routes of this gateway.
       */
      routes?: Routes[];
    };
  } | null;
  /**
   * Ports with their listeners and routes; the former way to write `gateways`.
   *
   * Items: A port with its listeners.
   */
  binds?: {
    /**
     * Port to listen on. 0 selects any free port.
     */
    port: number | string;
    /**
     * `connect`: clients send CONNECT requests, whose tunnels lead to the ports of this gateway that they name: those on all addresses of the machine, and internal ones. Such a bind has no listeners.
     */
    tunnelProtocol?: 'direct' | 'connect';
    /**
     * `internal`: the port is not opened, and only tunnels lead to it.
     */
    mode?: 'standard' | 'internal';
    /**
     * Listeners of the port.
     *
     * Items: A listener of a port.
     */
    listeners: {
      /**
       * Name of the listener; `listenerN` by default.
       */
      name?: string;
      /**
       * Host name that this listener serves, `*.example.com` for all names below it; any host by default. The most specific listener of a port handles a request.
       */
      hostname?: string;
      /**
       * Protocol of the listener; `HTTPS` if `tls` is set, otherwise `HTTP`.
       */
      protocol?: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | 'HBONE';
      tls?: Tls;
      /**
       * Policies that run before routing.
       */
      policies?: {
        cors?: Cors;
        oidc?: Oidc;
        jwtAuth?: JwtAuth;
        basicAuth?: BasicAuth;
        apiKey?: ApiKey;
        extAuthz?: ExtAuthz;
        authorization?: Authorization;
        budgets?: Budgets;
        extProc?: ExtProc;
        modules?: Modules;
        transformations?: Transformations;
      } | null;
      /**
       * Routes of this listener.
       */
      routes?: Routes[];
      /**
       * Routes of this listener, if its protocol is `TCP` or `TLS`.
       *
       * Items: A route for connections whose bytes are passed on, on a listener with the protocol `TCP` or `TLS`.
       */
      tcpRoutes?: {
        /**
         * Name of the route; `routeN` by default.
         */
        name?: string;
        /**
         * First part of the name of the route.
         */
        namespace?: string;
        /**
         * Names that clients ask for with TLS (SNI), with the protocol `TLS`. Every connection if empty; the most specific route takes it.
         */
        hostnames?: string[];
        policies?: Policies6;
        backends: Backends2;
      }[];
    }[];
  }[];
  /**
   * Routes that name the gateways they belong to.
   *
   * Items: A route that names its gateways.
   */
  routes?: {
    /**
     * Gateways that this route belongs to, as `name` or, for one of its listeners, `name/listener`; by default, the gateway named `default`.
     */
    gateways?: string | string[];
    /**
     * Name of the route in logs; `routeN` by default.
     */
    name?: string;
    /**
     * First part of the name of the route in logs: `namespace/name`.
     */
    namespace?: string;
    /**
     * Host names that this route serves; all host names if empty. `*.example.com` matches any name below it.
     */
    hostnames?: string[];
    matches?: Matches;
    policies?: Policies4;
    backends?: Backends;
  }[];
  /**
   * Backends that routes refer to by name.
   *
   * Items: A backend that routes refer to by name. They share its connections, sessions and health.
   */
  backends?: {
    policies?: Policies5;
    mcp?: Mcp;
    llm?: Llm;
    ai?: Ai2;
    /**
     * Address of an HTTP service: `host:port`, a URL without a path, or `unix:/path/of/socket`.
     */
    host?: string;
    dynamic?: Dynamic;
    aws?: Aws2;
    /**
     * Name of the backend, for references.
     */
    name: string;
  }[];
  /**
   * Services that backends with `service` refer to. Their endpoints are not discovered: `inferenceRouting` picks them.
   *
   * Items: A service whose endpoints a picker knows.
   */
  services?: {
    /**
     * Name of the service.
     */
    name: string;
    /**
     * Its namespace.
     */
    namespace: string;
    /**
     * Its host name: backends refer to the service as `namespace/hostname`.
     */
    hostname: string;
    /**
     * For compatibility: always empty.
     *
     * @maxItems 0
     */
    vips?: string[];
    /**
     * Ports that backends can name, each with the port of its endpoints. The port that a picker names counts.
     */
    ports: {
      [k: string]: number | string;
    };
  }[];
  /**
   * Policies that apply to gateways, routes or backends that they name. One that is written at its place, or at a more specific one, takes precedence.
   *
   * Items: A policy for a gateway, listener, route or backend that is written elsewhere.
   */
  policies?: {
    /**
     * Name of the policy. It keeps its state across reloads.
     */
    name: {
      /**
       * Name.
       */
      name: string;
      /**
       * Namespace.
       */
      namespace?: string;
    };
    /**
     * What the policy applies to.
     */
    target: {
      /**
       * All requests, or those of a listener or port.
       */
      gateway?: {
        /**
         * Always `default`: the whole program.
         */
        gatewayName?: string;
        /**
         * Always `default`.
         */
        gatewayNamespace?: string;
        /**
         * Listener, as logs name it; all listeners by default.
         */
        listenerName?: string;
        /**
         * Port, instead of a listener.
         */
        port?: number | string;
      } | null;
      /**
       * The routes with this name.
       */
      route?: {
        /**
         * Name of the route.
         */
        name: string;
        /**
         * Its namespace.
         */
        namespace?: string;
      } | null;
      /**
       * One of the top-level `backends`.
       */
      backend?: {
        /**
         * A backend.
         */
        backend: {
          /**
           * Name of one of the top-level `backends`.
           */
          name: string;
          /**
           * Always empty.
           */
          namespace?: string;
        };
      } | null;
    };
    /**
     * When it runs: after routing, or before (`gateway`, for a target `gateway` only).
     */
    phase?: 'route' | 'gateway';
    /**
     * The policy: exactly one.
     */
    policy: {
      timeout?: Timeout;
      cors?: Cors;
      responseHeaderModifier?: ResponseHeaderModifier;
      mcpAuthentication?: McpAuthentication;
      oidc?: Oidc;
      jwtAuth?: JwtAuth;
      basicAuth?: BasicAuth;
      apiKey?: ApiKey;
      extAuthz?: ExtAuthz;
      authorization?: Authorization;
      csrf?: Csrf;
      localRateLimit?: LocalRateLimit;
      remoteRateLimit?: RemoteRateLimit;
      budgets?: Budgets;
      mcpAuthorization?: McpAuthorization;
      mcpGuardrails?: McpGuardrails;
      buffer?: Buffer;
      extProc?: ExtProc;
      modules?: Modules;
      transformations?: Transformations;
      requestHeaderModifier?: RequestHeaderModifier;
      ai?: Ai;
      backendTLS?: BackendTLS;
      backendAuth?: BackendAuth3;
      urlRewrite?: UrlRewrite;
      retry?: Retry;
      requestRedirect?: RequestRedirect;
      /**
       * Answers the page on which users sign in at MCP servers, `config.mcp.signIn.url`, and the callback below it. Its route needs no backend.
       */
      mcpSignIn?: {} | null;
      delay?: Delay;
      directResponse?: DirectResponse;
      /**
       * For agents with the Agent2Agent protocol (A2A): URLs in agent cards lead through the gateway, and the access log has the method and outcome of calls.
       */
      a2a?: {} | null;
      requestMirror?: RequestMirror;
    };
  }[];
  /**
   * Routes that other routes delegate to.
   *
   * Items: Routes that other routes delegate to. A request must match both.
   */
  routeGroups?: {
    /**
     * Name of the group, for references.
     */
    name: string;
    /**
     * Routes of the group.
     */
    routes?: Routes[];
  }[];
  /**
   * Routes for connections whose bytes are passed on, on gateways with the protocol `TCP` or `TLS`.
   *
   * Items: A route for connections that names its gateways.
   */
  tcpRoutes?: {
    /**
     * Gateways that this route belongs to, as in `routes`; by default, the gateway named `default`.
     */
    gateways?: string | string[];
    /**
     * Name of the route; `routeN` by default.
     */
    name?: string;
    /**
     * First part of the name of the route.
     */
    namespace?: string;
    /**
     * Names that clients ask for with TLS (SNI), with the protocol `TLS`. Every connection if empty; the most specific route takes it.
     */
    hostnames?: string[];
    policies?: Policies6;
    backends: Backends2;
  }[];
  /**
   * Short form for one MCP endpoint. If it has its own port, its targets serve every path.
   */
  mcp?: {
    /**
     * Port of the MCP endpoint. By default, a gateway named `default` serves the endpoint; if there is none, port 3000.
     */
    port?: number | string;
    /**
     * Gateway, or list of gateways, that serves the endpoint on its own port.
     */
    gateways?: string | string[];
    targets: Targets;
    statefulMode?: StatefulMode;
    /**
     * Whether tools are named `target_tool`: with several targets only, always, or never.
     */
    prefixMode?: 'conditional' | 'always' | 'never';
    /**
     * What happens when a target fails. `failOpen`: sessions continue with the other targets. `failClosed`: every session fails.
     */
    failureMode?: 'failOpen' | 'failClosed';
    toolPinning?: ToolPinning;
    toolSearch?: ToolSearch;
    bundles?: Bundles;
    /**
     * Whether to check Host and Origin against configured host names. `auto`: on connections to a loopback address. `true`: on all connections. `false`: never.
     */
    dnsRebindingProtection?: 'auto' | (boolean | string);
    /**
     * Policies of the endpoint.
     */
    policies?: {
      timeout?: Timeout;
      cors?: Cors;
      responseHeaderModifier?: ResponseHeaderModifier;
      mcpAuthentication?: McpAuthentication;
      oidc?: Oidc;
      jwtAuth?: JwtAuth;
      basicAuth?: BasicAuth;
      apiKey?: ApiKey;
      extAuthz?: ExtAuthz;
      authorization?: Authorization;
      csrf?: Csrf;
      localRateLimit?: LocalRateLimit;
      remoteRateLimit?: RemoteRateLimit;
      budgets?: Budgets;
      mcpAuthorization?: McpAuthorization;
      mcpGuardrails?: McpGuardrails;
      buffer?: Buffer;
      extProc?: ExtProc;
      modules?: Modules;
      transformations?: Transformations;
      requestHeaderModifier?: RequestHeaderModifier;
      ai?: Ai;
      backendTLS?: BackendTLS;
      backendAuth?: BackendAuth3;
      urlRewrite?: UrlRewrite;
      retry?: Retry;
      requestRedirect?: RequestRedirect;
      /**
       * Answers the page on which users sign in at MCP servers, `config.mcp.signIn.url`, and the callback below it. Its route needs no backend.
       */
      mcpSignIn?: {} | null;
      delay?: Delay;
      directResponse?: DirectResponse;
      /**
       * For agents with the Agent2Agent protocol (A2A): URLs in agent cards lead through the gateway, and the access log has the method and outcome of calls.
       */
      a2a?: {} | null;
      requestMirror?: RequestMirror;
    } | null;
  } | null;
  /**
   * Short form for LLM providers: an OpenAI-compatible endpoint.
   */
  llm?: {
    /**
     * Port of the LLM endpoint. By default, a gateway named `default` serves the endpoint; if there is none, port 4000.
     */
    port?: number | string;
    /**
     * Gateway, or list of gateways, that serves the endpoint on its own port.
     */
    gateways?: string | string[];
    models: Models;
    virtualModels?: VirtualModels;
    providers?: Providers;
    guardrails?: Guardrails2;
    /**
     * Policies of the endpoint.
     */
    policies?: {
      timeout?: Timeout;
      cors?: Cors;
      responseHeaderModifier?: ResponseHeaderModifier;
      mcpAuthentication?: McpAuthentication;
      oidc?: Oidc;
      jwtAuth?: JwtAuth;
      basicAuth?: BasicAuth;
      apiKey?: ApiKey;
      extAuthz?: ExtAuthz;
      authorization?: Authorization;
      csrf?: Csrf;
      localRateLimit?: LocalRateLimit;
      remoteRateLimit?: RemoteRateLimit;
      budgets?: Budgets;
      mcpAuthorization?: McpAuthorization;
      mcpGuardrails?: McpGuardrails;
      buffer?: Buffer;
      extProc?: ExtProc;
      modules?: Modules;
      transformations?: Transformations;
      requestHeaderModifier?: RequestHeaderModifier;
      ai?: Ai;
      backendTLS?: BackendTLS;
      backendAuth?: BackendAuth3;
      urlRewrite?: UrlRewrite;
      retry?: Retry;
      requestRedirect?: RequestRedirect;
      /**
       * Answers the page on which users sign in at MCP servers, `config.mcp.signIn.url`, and the callback below it. Its route needs no backend.
       */
      mcpSignIn?: {} | null;
      delay?: Delay;
      directResponse?: DirectResponse;
      /**
       * For agents with the Agent2Agent protocol (A2A): URLs in agent cards lead through the gateway, and the access log has the method and outcome of calls.
       */
      a2a?: {} | null;
      requestMirror?: RequestMirror;
      /**
       * Guardrails for all models, after `llm.guardrails`.
       */
      guardrails?: {
        request?: Request2;
        response?: Response2;
        /**
         * `Disabled`: responses that are streams are not checked.
         */
        streaming?: 'Enabled' | 'Disabled';
      } | null;
    } | null;
  } | null;
  /**
   * The admin pages on a gateway, beside their own address (`config.adminAddr`). Clients that a policy authenticates (`oidc`, `jwtAuth`, `basicAuth`, `apiKey`) may do everything, or what `config.adminRoles` says; others may only look, and only from this machine.
   */
  ui?: {
    /**
     * Gateway, or list of gateways, that serves the pages. Default: the gateway named `default`.
     */
    gateways?: string | string[];
    /**
     * Policies of the pages. Clients that none of them authenticates cannot change anything.
     */
    policies?: {
      cors?: Cors;
      oidc?: Oidc;
      jwtAuth?: JwtAuth;
      authorization?: Authorization;
      extAuthz?: ExtAuthz;
      basicAuth?: BasicAuth;
      apiKey?: ApiKey;
      csrf?: Csrf;
    } | null;
  } | null;
}
export interface Key {
  /**
   * The token, or `{ file: … }`.
   */
  value:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      };
}
export interface Rules {
  /**
   * A kind of sensitive data.
   */
  builtin?: 'email' | 'ssn' | 'creditCard' | 'phoneNumber' | 'caSin' | 'iban' | 'apiKey';
  /**
   * A regular expression (RE2), which may match any part of a text.
   */
  pattern?: string;
}
/**
 * Protocol of the service; gRPC by default.
 */
export interface Protocol {
  /**
   * Call the service with Envoy's protocol `envoy.service.auth.v3` (gRPC).
   */
  grpc?: {
    /**
     * Fixed values for the service (`context_extensions`).
     */
    context?: {
      [k: string]: string;
    } | null;
    /**
     * Maps for the service (`metadata_context`), as CEL expressions; one that fails is omitted. By default, the claims of the token as `envoy.filters.http.jwt_authn`.
     */
    metadata?: {
      [k: string]: string;
    } | null;
  } | null;
  /**
   * Call the service over HTTP.
   */
  http?: {
    /**
     * CEL expression for the path and query of the call; by default, those of the request.
     */
    path?: string;
    /**
     * Headers for the service, as CEL expressions; `:authority` sets the host and `:method` the method. A header whose expression fails is omitted; an `:authority` that is not a host, or a `:method` that is not a method, denies the request.
     */
    addRequestHeaders?: {
      [k: string]: string;
    } | null;
    /**
     * Headers of the service's response that are added to the request to the backend.
     */
    includeResponseHeaders?: string[];
    /**
     * CEL expression for the body of the call: text, bytes, or a value that becomes JSON.
     */
    body?: string;
    /**
     * CEL expression for a URL to redirect the client to (302) if the service answers 401 or 403.
     */
    redirect?: string;
    /**
     * Same as `metadata` next to `host`.
     */
    metadata?: {
      [k: string]: string;
    } | null;
  } | null;
}
/**
 * Sends the body of the request to the service.
 */
export interface IncludeRequestBody {
  /**
   * Bytes of the body that are sent.
   */
  maxRequestBytes?: number | string;
  /**
   * Send the beginning of a larger body, instead of denying the request with 413.
   */
  allowPartialMessage?: boolean | string;
  /**
   * For gRPC: send `raw_body` instead of `body`.
   */
  packAsBytes?: boolean | string;
}
/**
 * Uses an outcome for all requests with the same key. Failures of the service are not cached.
 */
export interface Cache {
  /**
   * CEL expressions for everything that the service decides by. Requests for which one of them fails are not cached.
   *
   * @minItems 1
   * @maxItems 16
   */
  key: string[];
  /**
   * How long an outcome is used: a duration such as `5m`, or a CEL expression for a duration or for the time when it expires.
   */
  ttl: string;
  /**
   * Outcomes that are kept; beyond that, the least recently used is removed.
   */
  maxEntries?: number | string;
}
/**
 * How the gateway connects to the service.
 */
export interface Policies2 {
  backendTLS?: BackendTLS;
  backendAuth?: BackendAuth;
  /**
   * Calls of the service.
   */
  http?: {
    /**
     * Maximum time of a call.
     */
    requestTimeout?: '30s' | (string & {});
  } | null;
  tcp?: Tcp;
}
/**
 * Changes the request before it is sent to the backend.
 */
export interface Request {
  /**
   * Headers of the request to set, as CEL expressions. A header whose expression fails is removed.
   */
  set?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to add, as CEL expressions; existing headers of the same name are kept, unless the expression fails.
   */
  add?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to remove, after `add` and `set`.
   */
  remove?: string[];
  /**
   * CEL expression for a map of all headers, which replaces them before `add` and `set`. Nothing is replaced if it fails.
   */
  replace?: string;
  /**
   * CEL expression for the body: text, bytes, or a value that becomes JSON. If it fails, the request has an empty body.
   */
  body?: string;
  /**
   * Values, as CEL expressions, that later expressions read as `metadata.<name>`. A value whose expression fails is omitted.
   */
  metadata?: {
    [k: string]: string;
  } | null;
}
/**
 * Changes the response before it is sent to the client.
 */
export interface Response {
  /**
   * Headers of the response to set, as CEL expressions. A header whose expression fails is removed.
   */
  set?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to add, as CEL expressions; existing headers of the same name are kept, unless the expression fails.
   */
  add?: {
    [k: string]: string;
  } | null;
  /**
   * Headers to remove, after `add` and `set`.
   */
  remove?: string[];
  /**
   * CEL expression for a map of all headers, which replaces them before `add` and `set`. Nothing is replaced if it fails.
   */
  replace?: string;
  /**
   * CEL expression for the body: text, bytes, or a value that becomes JSON. If it fails, the response has an empty body.
   */
  body?: string;
  /**
   * Values, as CEL expressions, that later expressions read as `metadata.<name>`. A value whose expression fails is omitted.
   */
  metadata?: {
    [k: string]: string;
  } | null;
}
/**
 * A route: matching requests, their policies and their backends.
 */
export interface Routes {
  /**
   * Name of the route in logs; `routeN` by default.
   */
  name?: string;
  /**
   * First part of the name of the route in logs: `namespace/name`.
   */
  namespace?: string;
  /**
   * Host names that this route serves; all host names if empty. `*.example.com` matches any name below it.
   */
  hostnames?: string[];
  matches?: Matches;
  policies?: Policies4;
  backends?: Backends;
}
export interface Headers {
  /**
   * Header, or `:method`, `:path`, `:authority`, `:scheme`.
   */
  name: string;
  /**
   * Condition on the value.
   */
  value: {
    /**
     * The whole value.
     */
    exact?: string;
    /**
     * Regular expression (RE2) that the whole value must match.
     */
    regex?: string;
  };
}
export interface Prepend {
  /**
   * Role of the message. In the Anthropic API, `system` and `developer` become system prompts.
   */
  role: 'system' | 'developer' | 'user' | 'assistant';
  /**
   * Text of the message.
   */
  content: string;
}
/**
 * Credential for the service.
 */
export interface BackendAuth2 {
  /**
   * Key of the service, or `{ file: … }`.
   */
  key:
    | string
    | {
        /**
         * File with the text. It is read again when it changes.
         */
        file: string;
      }
    | Key;
}
/**
 * A header.
 */
export interface Header2 {
  /**
   * Header for the credential; it replaces the one of the client.
   */
  name: string;
  /**
   * Text before the credential, such as `Bearer `.
   */
  prefix?: string | null;
}
/**
 * Authentication of the gateway at this server.
 */
export interface ClientAuth {
  /**
   * How the gateway authenticates.
   */
  method?: 'clientSecretBasic' | 'clientSecretPost';
  /**
   * Id of the gateway at the server.
   */
  clientId: string;
  clientSecret?: ClientSecret;
}
export interface Provider {
  /**
   * A provider described by the formats of its API. Needs `params.baseUrl`.
   */
  custom: {
    /**
     * Model name sent to the provider instead of the requested name, unless `params.model` is set.
     */
    model?: string;
    /**
     * Name of the provider in telemetry and price catalogs. Default: `custom`.
     */
    providerOverride?: string;
    formats: Formats;
  };
}
export interface Ai3 {
  /**
   * Name of the provider in traces. Unique in the backend.
   */
  name: string;
  /**
   * Kind of provider, with its settings.
   */
  provider: {
    /**
     * The OpenAI API, or a compatible server with `hostOverride`.
     */
    openAI?: {
      /**
       * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
       */
      model?: string;
    } | null;
    /**
     * The Anthropic API.
     */
    anthropic?: {
      /**
       * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
       */
      model?: string;
    } | null;
    /**
     * The Gemini API.
     */
    gemini?: {
      /**
       * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
       */
      model?: string;
    } | null;
    /**
     * Vertex AI on Google Cloud.
     */
    vertex?: {
      /**
       * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
       */
      model?: string;
      /**
       * Location of the `vertex` provider, such as `europe-west1`, `us`, `eu` or `global`. Default: `global`.
       */
      region?: string;
      /**
       * Google Cloud project.
       */
      projectId: string;
    } | null;
    /**
     * Amazon Bedrock.
     */
    bedrock?: {
      /**
       * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
       */
      model?: string;
      /**
       * AWS region of the `bedrock` provider, such as `us-east-1`.
       */
      region?: string;
      /**
       * Id or ARN of a Bedrock guardrail that checks prompts and answers.
       */
      guardrailIdentifier?: string;
      /**
       * Its version. Default: `DRAFT`.
       */
      guardrailVersion?: string;
    } | null;
    /**
     * Azure OpenAI.
     */
    azure?: {
      /**
       * Model name sent to the provider instead of the requested name. A `*` in it stands for the text that the one in `name` of the model matched.
       */
      model?: string;
      /**
       * Azure resource: the first part of its host name.
       */
      resourceName: string;
      /**
       * Type of the Azure resource. `openAI`: `NAME.openai.azure.com`. `foundry`, also called `aiServices`: `NAME.services.ai.azure.com`. Default: `openAI`.
       */
      resourceType?: 'openAI' | 'foundry' | 'aiServices';
      apiVersion?: AzureApiVersion;
      /**
       * Project of a `foundry` resource. Default: the name of the resource.
       */
      projectName?: string;
    } | null;
    /**
     * A provider described by the formats of its API. Needs `params.baseUrl`.
     */
    custom?: {
      /**
       * Model name sent to the provider instead of the requested name, unless `params.model` is set.
       */
      model?: string;
      /**
       * Name of the provider in telemetry and price catalogs. Default: `custom`.
       */
      providerOverride?: string;
      formats: Formats;
    } | null;
  };
  /**
   * Server that is called instead of that of the provider: `host:port`. Port 443: over TLS.
   */
  hostOverride?: string;
  /**
   * Path up to `/chat/completions`. Default: that of the provider.
   */
  pathPrefix?: string;
  /**
   * Path of every call, instead of that of its format below `pathPrefix`.
   */
  pathOverride?: string;
  /**
   * Deduct an estimate of the tokens of the request from limits of tokens before the call, and not only all tokens after it: calls at the same time cannot exceed a limit by their requests.
   */
  tokenize?: boolean | string;
  /**
   * Policies of calls to this provider.
   */
  policies?: {
    backendAuth?: Auth;
    backendTLS?: BackendTLS;
    /**
     * Changes of calls, as the policy `ai` of the route.
     */
    ai?: {
      /**
       * Request fields to set if the client did not set them.
       */
      defaults?: {
        [k: string]: _Schema1;
      } | null;
      /**
       * Request fields to always set.
       */
      overrides?: {
        [k: string]: _Schema1;
      } | null;
      /**
       * As `transformation` of a model: request fields as CEL expressions.
       */
      transformations?: {
        [k: string]: string;
      } | null;
      /**
       * As `finalTransformation` of a model: fields of the request as it is sent to the provider, as CEL expressions.
       */
      finalTransformations?: {
        [k: string]: string;
      } | null;
      prompts?: Prompts;
      /**
       * Model names that are replaced, by the requested name: one name, `prefix*` or `*suffix`. The most specific one counts.
       */
      modelAliases?: {
        [k: string]: string;
      } | null;
      promptCaching?: PromptCaching;
      routes?: Routes2;
    } | null;
  } | null;
}
