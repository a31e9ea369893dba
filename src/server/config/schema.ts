import { z } from 'zod';
import { durationSchema, durationText } from '../../core/duration.ts';
import { LIMITS } from '../../core/limits.ts';
import { LISTEN_ADDRESS_FORMS, parseListenAddress } from '../../core/listen.ts';
import { InvalidDirectives, parseDirectives } from '../../core/log-directives.ts';
import { choice, list, mapping } from '../../core/schema/mapping.ts';
import { adminRolesSchema } from '../admin-access/settings.ts';
import { auditSettingsSchema } from '../audit/settings.ts';
import { databaseSchema } from '../database/settings.ts';
import { networkAuthorizationSchema } from '../expressions/network-authorization.ts';
import { isHeaderName } from '../kernel/request/header-list.ts';
import { PATH_MODES } from '../kernel/request/request-target.ts';
import { FIELD_MODES } from '../kernel/request/validate-request.ts';
import { llmFields } from '../llm/backend.ts';
import { catalogReferenceSchema } from '../llm/cost/catalog.ts';
import { mcpFields } from '../mcp/backend-config.ts';
import { accessLogSchema } from '../observe/access-log.ts';
import { metricsSchema } from '../observe/metrics/policy.ts';
import { accessLogExportSchema } from '../observe/otlp/access-log-export.ts';
import { frontendTracingSchema, tracingSchema } from '../observe/otlp/settings.ts';
import { networkExtAuthzSchema } from '../policies/ext-authz/network.ts';
import { recordPolicySchema } from '../record/policy.ts';
import {
  frontendHttpElsewhere,
  frontendHttpFields,
  frontendTcpSchema,
  frontendTlsSchema,
} from '../transport/connection-settings.ts';
import { sharedSchema } from '../transport/redis/settings.ts';
import { trustedProxiesSchema } from '../transport/trusted-proxies.ts';
import { signInSchema } from '../user-tokens/settings.ts';
import { OTHER_PROCESS_SETTINGS } from './not-built.ts';
import {
  attachedPolicySchema,
  attachedRouteSchema,
  attachedTcpRouteSchema,
  bindSchema,
  gatewayReference,
  gatewaySchema,
  name,
  namedBackendSchema,
  policiesMeta,
  policiesSchema,
  port,
  routeGroupSchema,
  type routeSchema,
  serviceSchema,
} from './traffic-schema.ts';
import { workerFields } from './workers.ts';

/** Address of a server of the process, in the format of `parseListenAddress`. */
const listenAddressSchema = z
  .union(
    [
      z
        .string()
        .refine((text) => parseListenAddress(text) !== undefined, { error: LISTEN_ADDRESS_FORMS })
        .meta({ examples: ['127.0.0.1:15000', 'unix:/run/agctl/admin.sock', 'off'] }),
      // What programs with YAML 1.1, such as Helm, make of `off`.
      z.literal(false),
    ],
    { error: LISTEN_ADDRESS_FORMS },
  )
  .transform((address) => (address === false ? 'off' : address));

const directives = z.string().superRefine((text, check) => {
  try {
    parseDirectives(text);
  } catch (error) {
    if (!(error instanceof InvalidDirectives)) throw error;
    check.addIssue({ code: 'custom', message: `\`${error.clause}\` is not a log level: ${error.hint}` });
  }
});

/** Log levels, as one string of directives. */
const logLevelSchema = z
  .union([directives, z.array(directives).min(1)])
  .transform((value) => [value].flat().join(','))
  .describe(
    'Least severe messages to log: `error`, `warn`, `info`, `debug`, `trace` or `off`. Also levels per module, as in `info,mcp=debug,request=off`, where `request` is the access log; the environment variable RUST_LOG overrides it.',
  );

/** `config.http`. */
const requestValidationSchema = z
  .strictObject({
    pathNormalization: choice(
      'Handling of paths that servers interpret differently. `merge` merges repeated slashes and rejects encoded slashes (except in the id of `/v1/models/{id}`) and backslashes with status 400; `reject` also rejects repeated slashes and `;` (also `%3B`), which services need that ignore path parameters, as many in Java do: `/admin;x=1` is another path than `/admin` for routes and rules; `keep` forwards all of these unchanged. Dot segments and control characters are always rejected.',
      PATH_MODES,
      'merge',
    ),
    headersWithUnderscores: choice(
      'Handling of request headers with an underscore in their name, which some servers treat like a hyphen: `drop` removes them before any policy, `reject` rejects the request with status 400, `allow` keeps them.',
      FIELD_MODES,
      'drop',
    ),
    overrideHeaders: z
      .enum(FIELD_MODES)
      .optional()
      .describe(
        'Handling of request headers with which some servers replace the method or path that rules have checked: `X-HTTP-Method-Override`, `X-HTTP-Method`, `X-Method-Override`, `X-Original-Method`, `X-Original-URL`, `X-Rewrite-URL` and `_method`. `drop` (default) removes them before any policy, `reject` rejects the request with status 400, `allow` keeps them, but not for LLM providers and MCP servers.',
      ),
    trustedProxies: trustedProxiesSchema,
  })
  .prefault({})
  .describe('Validation of request paths and headers before routing and policies, and who the client is.');

const processSchema = mapping('Settings of the process, read at startup.', {
  adminAddr: listenAddressSchema
    .prefault('localhost:15000')
    .describe(
      'Address of the admin server: `ip:port`, `localhost:port` for both loopback addresses, `unix:/path`, or `off`.',
    ),
  adminHosts: list(
    'Host names of the admin server, in addition to `localhost` and IP addresses. Requests with other Host headers are rejected, which protects against DNS rebinding by web pages.',
    z.string().regex(/^[A-Za-z0-9._-]+$/, { error: 'expected a host name, without a port' }),
  ),
  adminRoles: adminRolesSchema.optional(),
  ...workerFields,
  logging: z
    .strictObject({
      level: logLevelSchema.default('info'),
      format: choice('Format of log and access-log lines.', ['text', 'json'], 'text'),
    })
    .prefault({})
    .describe('Logging.'),
  statsAddr: listenAddressSchema
    .optional()
    .describe(
      'Address of the metrics server (`/metrics`); all addresses of the machine, port 15020, by default.',
    ),
  readinessAddr: listenAddressSchema
    .optional()
    .describe(
      'Address of the readiness server (`/healthz/ready`, `/healthz/live`, `/healthz/startup`); all addresses of the machine, port 15021, by default.',
    ),
  metrics: metricsSchema.prefault({}),
  histograms: z
    .enum(['classic', 'native', 'both'])
    .default('classic')
    .describe(
      'Form of the histograms of the metrics: `classic` ones have fixed buckets, `native` ones exponential buckets, exposed only in the Prometheus protobuf format; the text format then has their sum and count.',
    ),
  tracing: tracingSchema.prefault({}),
  session: z
    .strictObject({
      key: z
        .string()
        .regex(/^[0-9a-fA-F]{64}$/, { error: 'expected 64 hexadecimal digits' })
        .optional()
        .meta({ secret: true })
        .describe(
          "Key for the encryption of session ids. Processes with the same key can continue each other's sessions.",
        ),
    })
    .prefault({})
    .describe('MCP session ids.'),
  shared: sharedSchema.optional(),
  mcp: z
    .strictObject({
      sessionTtl: durationSchema
        .prefault(durationText(LIMITS.sessionIdle))
        .describe('Time without a request after which a session ends.'),
      maxSessions: z
        .int()
        .min(1)
        .default(LIMITS.sessions)
        .describe('Maximum number of sessions; further ones are rejected with status 503.'),
      maxChildren: z
        .int()
        .min(1)
        .default(LIMITS.children)

        .describe(
          'Maximum number of child processes of stdio targets. At the limit, the session that has been idle for the longest time is ended; if none is idle, new sessions are rejected with status 503.',
        ),
      signIn: signInSchema.optional(),
    })
    .prefault({})
    .describe('MCP sessions, and sign-in of users at MCP servers.'),
  http: requestValidationSchema,
  modelCatalog: list(
    'Price catalogs, for the cost of LLM calls. Entries of later catalogs replace those of earlier ones.',
    catalogReferenceSchema,
  ),
  database: databaseSchema.optional(),
  audit: auditSettingsSchema.optional(),
  storage: mapping('Where changes of the configuration are stored.', {
    mode: z
      .enum(['file', 'readOnly'], {
        error:
          'only `file` and `readOnly` are supported: changes of the configuration are not stored in the database',
      })
      .default('file')
      .describe(
        'What the admin pages may change. `file`: virtual keys, and the configuration file with `agctl serve --ui-write`. `readOnly`: neither; the environment variable UI_READ_ONLY with any value but `false` does the same.',
      ),
  }).prefault({}),
  sensitiveHeaders: list(
    'Headers whose values traces do not show, besides those with credentials, which are recognized by their names and by the policies that read them.',
    z.string().refine(isHeaderName, { error: 'expected a header name' }),
  ),
  connectionTerminationDeadline: durationSchema
    .prefault(durationText(LIMITS.drain))
    .describe('How long open requests may take to finish after a shutdown has started.'),
}).meta({ elsewhere: OTHER_PROCESS_SETTINGS });

/** The short forms have no address of their own. */
const elsewhere = (key: string, ownPort: number) => ({
  elsewhere: {
    address: `define a gateway with the address, \`gateways: { local: { port: ${ownPort}, address: 127.0.0.1 } }\`, and write \`${key}: { gateways: local, ... }\` without \`port\``,
  },
});

const simpleLlmSchema = mapping('Short form for LLM providers: an OpenAI-compatible endpoint.', {
  port: port
    .optional()
    .describe(
      'Port of the LLM endpoint. By default, a gateway named `default` serves the endpoint; if there is none, port 4000.',
    ),
  gateways: gatewayReference
    .optional()
    .describe('Gateway, or list of gateways, that serves the endpoint on its own port.'),
  ...llmFields,
  policies: policiesSchema
    .extend({
      guardrails: llmFields.guardrails.describe('Guardrails for all models, after `llm.guardrails`.'),
    })
    .meta(policiesMeta)
    .optional()
    .describe('Policies of the endpoint.'),
}).meta({
  elsewhere: {
    ...elsewhere('llm', 4000).elsewhere,
    tls: 'TLS belongs to ports: define a gateway with `tls`, and write `llm: { gateways: <name>, ... }`',
  },
});

const simpleMcpSchema = mapping(
  'Short form for one MCP endpoint. If it has its own port, its targets serve every path.',
  {
    port: port
      .optional()
      .describe(
        'Port of the MCP endpoint. By default, a gateway named `default` serves the endpoint; if there is none, port 3000.',
      ),
    gateways: gatewayReference
      .optional()
      .describe('Gateway, or list of gateways, that serves the endpoint on its own port.'),
    ...mcpFields,
    policies: policiesSchema.optional().describe('Policies of the endpoint.'),
  },
).meta(elsewhere('mcp', 3000));

const UI_POLICIES = {
  cors: true,
  oidc: true,
  jwtAuth: true,
  authorization: true,
  extAuthz: true,
  basicAuth: true,
  apiKey: true,
  csrf: true,
} as const;

const uiSchema = mapping(
  'The admin pages on a gateway, beside their own address (`config.adminAddr`). Clients that a policy authenticates (`oidc`, `jwtAuth`, `basicAuth`, `apiKey`) may do everything, or what `config.adminRoles` says; others may only look, and only from this machine.',
  {
    gateways: gatewayReference
      .optional()
      .describe('Gateway, or list of gateways, that serves the pages. Default: the gateway named `default`.'),
    policies: policiesSchema
      .pick(UI_POLICIES)
      .optional()
      .describe('Policies of the pages. Clients that none of them authenticates cannot change anything.'),
  },
).meta({
  elsewhere: {
    port: 'the pages have the ports of gateways: write `gateways: { pages: { port: … } }` at the top level, and `ui: { gateways: pages }`; their own address is `config.adminAddr`',
  },
});

const NO_PROXY_PROTOCOL =
  'the PROXY protocol is not supported: behind a proxy for HTTP, set `config.http.trustedProxies`';

const frontendSchema = mapping(
  'Settings for every connection and request, before routing and after the response.',
  {
    accessLog: accessLogSchema
      .extend({ database: recordPolicySchema.optional(), otlp: accessLogExportSchema.optional() })
      .prefault({})
      .describe('The access log, and the record of requests.'),
    tracing: frontendTracingSchema.optional(),
    http: z
      .strictObject({
        maxBufferSize: z
          .int()
          .min(1)
          .max(64 * 1024 * 1024)
          .optional()
          .describe(
            `Maximum size in bytes of a body that expressions can read; default: ${LIMITS.requestBodyBytes}. Of a larger body, only the beginning is available (\`bodyPrefix\`). A call to an \`llm\` backend with a larger body is rejected with status 413; if unset, the limit of these calls is ${LIMITS.llmRequestBytes}, unless an expression reads the request body.`,
          ),
        ...frontendHttpFields,
      })
      .meta({ elsewhere: frontendHttpElsewhere })
      .prefault({})
      .describe('Limits of HTTP, and of its connections.'),
    tls: frontendTlsSchema.optional(),
    tcp: frontendTcpSchema.optional(),
    networkAuthorization: networkAuthorizationSchema.optional(),
    networkExtAuthz: networkExtAuthzSchema.optional(),
  },
).meta({
  elsewhere: {
    proxy: NO_PROXY_PROTOCOL,
    proxyProtocol: NO_PROXY_PROTOCOL,
    logging: 'write `accessLog`',
    connect: 'write a bind with `tunnelProtocol: connect`: other ports answer requests with CONNECT with 405',
  },
});

export const configSchema = mapping('Configuration of agctl.', {
  config: processSchema.prefault({}),
  frontendPolicies: frontendSchema.prefault({}),
  gateways: z.record(name, gatewaySchema).default({}).describe('Gateways by name.'),
  binds: list('Ports with their listeners and routes; the former way to write `gateways`.', bindSchema),
  routes: list('Routes that name the gateways they belong to.', attachedRouteSchema),
  backends: list('Backends that routes refer to by name.', namedBackendSchema),
  services: list(
    'Services that backends with `service` refer to. Their endpoints are not discovered: `inferenceRouting` picks them.',
    serviceSchema,
  ),
  policies: list(
    'Policies that apply to gateways, routes or backends that they name. One that is written at its place, or at a more specific one, takes precedence.',
    attachedPolicySchema,
  ),
  routeGroups: list('Routes that other routes delegate to.', routeGroupSchema),
  tcpRoutes: list(
    'Routes for connections whose bytes are passed on, on gateways with the protocol `TCP` or `TLS`.',
    attachedTcpRouteSchema,
  ),
  mcp: simpleMcpSchema.optional(),
  llm: simpleLlmSchema.optional(),
  ui: uiSchema.optional(),
}).meta({
  elsewhere: {
    workloads: 'workloads exist only with a Kubernetes control plane: write the host names of `backends`',
    mcpServers:
      'write `mcp: { targets: [ … ] }`, with `{ name: …, stdio: { cmd: …, args: [ … ] } }` for each server, or `{ name: …, mcp: { host: https://…/mcp } }` for a remote one; `agctl init --from FILE` does that',
  },
});

export type Config = z.output<typeof configSchema>;
export type GatewayConfig = Config['gateways'][string];
export type RouteConfig = z.output<typeof routeSchema>;
