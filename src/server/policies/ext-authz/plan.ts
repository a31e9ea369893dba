import { z } from 'zod';
import { toCel } from '../../expressions/cel/values.ts';
import {
  type DocumentedScope,
  NOT_CALLED,
  NOT_ENDED,
  REQUEST_ROOTS,
  requestScope,
} from '../../expressions/scopes.ts';
import { defineVariable } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Expression } from '../../kernel/expression.ts';
import { isHeaderName, isSettableHeader, SETTABLE_HEADER } from '../../kernel/header-list.ts';
import { warnOfRemovedHeader } from '../../kernel/removed-header.ts';
import { Slot } from '../../kernel/slot.ts';
import {
  createUpstream,
  parseAddress,
  type Upstream,
  type UpstreamAddress,
} from '../../transport/upstream.ts';

/** Values of `metadata` from the response of the authorization service. */
export const extAuthzValues = new Slot<Readonly<Record<string, unknown>>>();

export const extAuthzVariable = defineVariable(
  'extauthz',
  { type: 'map', doc: 'Values of `metadata` of `extAuthz`, by name.' },
  (ctx) => toCel(extAuthzValues.get(ctx) ?? null),
);

/** Scope of expressions on the service's response, which is `response`. */
export const authorizationReplyScope: DocumentedScope = {
  name: 'authorizationReply',
  roots: [...REQUEST_ROOTS, 'response'],
  unavailable: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'Evaluated after external authorization has answered: `response` is its response.',
  keys: [
    'policies.extAuthz.metadata',
    'policies.extAuthz.protocol.http.metadata',
    'policies.extAuthz.protocol.http.redirect',
  ],
};

const expression = z.string().min(1);
const metadata = z.record(z.string().min(1), expression);
const headerName = z.string().refine(isHeaderName, { error: 'expected a header name' });
const copiedHeader = headerName.refine(isSettableHeader, { error: SETTABLE_HEADER });
const addedHeader = z.string().refine((name) => name === ':authority' || isSettableHeader(name), {
  error: `${SETTABLE_HEADER}, or \`:authority\` for the host of the call`,
});

export const schema = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .describe(
        'Address of the authorization service: `host:port`, a URL without a path, or `unix:/path/of/socket`.',
      ),
    protocol: z
      .strictObject({
        http: z
          .strictObject({
            path: expression
              .optional()
              .describe(
                'CEL expression for the path and query of the call; by default, those of the request.',
              ),
            addRequestHeaders: z
              .record(addedHeader, expression)
              .default({})
              .describe(
                'Headers for the service, as CEL expressions; `:authority` sets the host. A header whose expression fails is omitted; an `:authority` that is not a host denies the request.',
              ),
            includeResponseHeaders: z
              .array(copiedHeader)
              .default([])
              .describe("Headers of the service's response that are added to the request to the backend."),
            redirect: expression
              .optional()
              .describe(
                'CEL expression for a URL to redirect the client to (302) if the service answers 401 or 403.',
              ),
            metadata: metadata.optional().describe('Same as `metadata` next to `host`.'),
          })
          .describe('Call the service over HTTP.'),
      })
      .optional()
      .describe('Protocol of the service.'),
    metadata: metadata
      .optional()
      .describe(
        "Values from the service's response (`response`), as CEL expressions, which other expressions read as `extauthz.<name>`. A value whose expression fails is omitted.",
      ),
    includeRequestHeaders: z
      .array(headerName)
      .default(['authorization'])
      .describe('Headers of the request that are sent to the service.'),
    failureMode: z
      .union([
        z.enum(['deny', 'allow']),
        z.strictObject({ denyWithStatus: z.int().min(400).max(599).describe('Deny with this status.') }),
      ])
      .default('deny')
      .describe('What happens if the service cannot be reached or times out.'),
    denyResponse: z
      .enum(['fixed', 'passthrough'])
      .default('fixed')
      .describe("Response to a denied request: 403 with a fixed text, or the service's response."),
  })
  .describe('Asks an external service whether a request is allowed.');

type Config = z.output<typeof schema>;

/** The compiled policy. */
export interface Plan {
  readonly upstream: Upstream;
  /** Maximum time of a call, in ms. */
  readonly timeout: number;
  readonly config: Config;
  readonly path: Expression | undefined;
  readonly headers: readonly (readonly [name: string, value: Expression])[];
  readonly redirect: Expression | undefined;
  readonly metadata: readonly (readonly [name: string, value: Expression])[];
}

/** Compiles the policy. Reports errors; returns undefined if the service could not be called. */
export function compilePlan(config: Config, context: CompileContext): Plan | undefined {
  const http = config.protocol?.http;
  if (http === undefined) {
    context.report({
      code: 'AGW0103',
      message: '`protocol.http` is missing',
      label: 'expected how to call the service',
      help: 'add `protocol: { http: {} }`',
      notes: ['upstream defaults to gRPC here, which this gateway does not support'],
    });
  }
  if (http?.metadata !== undefined && config.metadata !== undefined) {
    context.at('metadata').report({
      code: 'AGW0105',
      message: 'duplicate `metadata`',
      help: 'keep it either here or under `protocol.http`',
    });
  }
  // These headers authenticate the client at the service: traces must omit their values.
  for (const [index, name] of config.includeRequestHeaders.entries()) {
    if (name.toLowerCase() !== 'host') context.settings.secretNames.headers.add(name.toLowerCase());
    warnOfRemovedHeader(name, context.at('includeRequestHeaders', index));
  }
  const address = parseAddress(config.host, context.at('host'));
  if (http === undefined) return undefined;
  const inHttp = context.at('protocol', 'http');
  const [source, location] =
    config.metadata === undefined
      ? [http.metadata ?? {}, inHttp.at('metadata')]
      : [config.metadata, context.at('metadata')];
  const compiled: Omit<Plan, 'upstream'> = {
    timeout: context.settings.limits.authorizationTimeout,
    config,
    path: http.path === undefined ? undefined : inHttp.at('path').cel(http.path, requestScope),
    headers: Object.entries(http.addRequestHeaders).map(([name, value]) => [
      name,
      inHttp.at('addRequestHeaders', name).cel(value, requestScope),
    ]),
    redirect:
      http.redirect === undefined
        ? undefined
        : inHttp.at('redirect').cel(http.redirect, authorizationReplyScope),
    metadata: Object.entries(source).map(([name, value]) => [
      name,
      location.at(name).cel(value, authorizationReplyScope),
    ]),
  };
  // Last, so that a wrong address does not hide errors in expressions.
  return address === undefined ? undefined : { ...compiled, upstream: openService(address, context) };
}

/** Opens at most `LIMITS.authorizationConnections` connections: otherwise a hanging service would use one per request. */
function openService(address: UpstreamAddress, context: CompileContext): Upstream {
  const max = context.settings.limits.authorizationConnections;
  const upstream = createUpstream(address, {
    connections: max,
    meter: context.settings.callMeter('Policy', 'ExtAuthz'),
    log: context.log,
  });
  context.inspection.bounds.push({
    name: 'extAuthz.connections',
    at: context.path.join('.'),
    max,
    used: () => upstream.connected,
  });
  return upstream;
}
