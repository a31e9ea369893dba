import { z } from 'zod';
import { choice, list, mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { anyPolicyKinds, backendKinds, policyKinds, policyKindsAt } from '../features.ts';
import type { PolicyKind, PolicyPlace } from '../kernel/policy.ts';
import { matchSchema } from '../kernel/routing/match.ts';
import { tcpRouteFields, tcpRouteMeta, tcpRouteSchema } from '../transport/tcp-routes.ts';
import { serverTlsSchema } from '../transport/tls/server-tls.ts';
import { withConditional } from './conditional-schema.ts';
import { OTHER_BACKEND_POLICIES, OTHER_POLICIES } from './not-built.ts';

type Optional<Kind extends { key: string; schema: z.ZodType }> = {
  [K in Kind as K['key']]: z.ZodOptional<K['schema']>;
};

/** A schema with one optional key per kind of a tuple. */
function optionalKeys<Kind extends { key: string; schema: z.ZodType }>(
  kinds: readonly Kind[],
): Optional<Kind> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a schema for each kind
  return Object.fromEntries(kinds.map((kind) => [kind.key, kind.schema.optional()])) as Optional<Kind>;
}

// One schema per kind: it is the same at every place before the backend is known.
const conditionalKinds = policyKinds.map((kind) => ({
  ...kind,
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only its key and schema are read
  schema: withConditional(kind as unknown as PolicyKind),
}));

/**
 * Policies of one place. The type has the policies of all places, in their form without conditions; the schema refuses
 * those of others.
 */
function policiesAt(place: PolicyPlace): Optional<(typeof policyKinds)[number]> {
  const kinds = policyKindsAt(place);
  if (place === 'backend') return optionalKeys<(typeof policyKinds)[number]>(kinds);
  const keys = new Set<string>(kinds.map(({ key }) => key));
  return optionalKeys(
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type leaves out the forms with conditions, see above
    conditionalKinds.filter(({ key }) => keys.has(key)) as unknown as (typeof policyKinds)[number][],
  );
}

/** Where to write the policies that a place does not have. */
const elsewhereThan = (place: PolicyPlace) => {
  const others = anyPolicyKinds.filter(({ places = ['route'] }) => !places.includes(place));
  const where = ({ places = ['route'] }: PolicyKind): string =>
    places.includes('route') ? 'set it under `policies` of a route' : 'set it under `policies` of a backend';
  return { ...OTHER_POLICIES, ...Object.fromEntries(others.map((kind) => [kind.key, where(kind)])) };
};

export const gatewayReference = z.union([z.string(), z.array(z.string()).min(1)]);
export const port = z.int().min(0).max(65_535);

export const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, { error: 'expected letters, digits, `.`, `_` and `-`' });

export const policiesMeta = { elsewhere: elsewhereThan('route') };

export const policiesSchema = z.strictObject(policiesAt('route')).meta(policiesMeta);

const backendPoliciesSchema = z
  .strictObject(policiesAt('backend'))
  .meta({ elsewhere: { ...elsewhereThan('backend'), ...OTHER_BACKEND_POLICIES } });

const backendSchema = z.strictObject({
  weight: z
    .int()
    .min(0)
    .default(1)
    .describe('Share of requests, among the weights of all backends of the route.'),
  policies: backendPoliciesSchema
    .optional()
    .describe('Policies of this backend, run once it was picked, after those of the route.'),
  ...optionalKeys(backendKinds),
});

/** Kinds of backends that upstream has and this program has not. */
const otherKinds = {
  elsewhere: {
    internal: 'the admin server is not a backend: it has its own address, `config.adminAddr`',
    invalid: 'it marks a reference that could not be resolved: write `host: name:port`',
  },
};

const routeBackendSchema = backendSchema
  .extend({
    backend: nonEmpty
      .optional()
      .describe('Name of one of the top-level `backends`, which all routes that name it share.'),
    routeGroup: nonEmpty
      .optional()
      .describe(
        'Name of one of `routeGroups`: its routes decide, with the policies of this route unless they have their own.',
      ),
  })
  .meta(otherKinds);

export const namedBackendSchema = backendSchema
  .omit({ weight: true, service: true })
  .extend({ name: nonEmpty.describe('Name of the backend, for references.') })
  .describe('A backend that routes refer to by name. They share its connections, sessions and health.')
  .meta({ elsewhere: { ...otherKinds.elsewhere, service: 'write `service` at the backend of a route' } });

const RULE_NAME = 'it names a part of a Kubernetes HTTPRoute: remove it';

const routeFields = {
  name: nonEmpty.optional().describe('Name of the route in logs; `routeN` by default.'),
  namespace: nonEmpty
    .default('default')
    .describe('First part of the name of the route in logs: `namespace/name`.'),
  hostnames: list(
    'Host names that this route serves; all host names if empty. `*.example.com` matches any name below it.',
    z.string().regex(/^(?:\*\.)?[A-Za-z0-9.-]+$/, {
      error: 'expected a host name such as `api.example.com` or `*.example.com`',
    }),
  ),
  matches: z
    .array(matchSchema)
    .min(1)
    .optional()
    .describe(
      'Conditions on requests: the route handles requests that match one of the entries. Every request by default.',
    ),
  policies: policiesSchema.optional().describe('Policies of this route, run before its backend.'),
  backends: list('Backends of the route: one, or several that share requests by weight.', routeBackendSchema),
};

const routeMeta = { foreignNames: { match: 'matches' }, elsewhere: { ruleName: RULE_NAME } };

export const routeSchema = mapping(
  'A route: matching requests, their policies and their backends.',
  routeFields,
).meta(routeMeta);

export const routeGroupSchema = mapping('Routes that other routes delegate to. A request must match both.', {
  name: nonEmpty.describe('Name of the group, for references.'),
  routes: list('Routes of the group.', routeSchema),
});

const MESH = 'meshes are not supported: remove it';

export const serviceSchema = mapping('A service whose endpoints a picker knows.', {
  name: nonEmpty.describe('Name of the service.'),
  namespace: nonEmpty.describe('Its namespace.'),
  hostname: nonEmpty.describe('Its host name: backends refer to the service as `namespace/hostname`.'),
  vips: z
    .array(z.string())
    .max(0, { error: 'virtual addresses need a mesh: expected an empty list' })
    .default([])
    .describe('For compatibility: always empty.'),
  ports: z
    .record(z.string().regex(/^\d{1,5}$/, { error: 'expected a port number' }), port)
    .describe(
      'Ports that backends can name, each with the port of its endpoints. The port that a picker names counts.',
    ),
}).meta({
  elsewhere: {
    appProtocols: 'write `http: { version: HTTP/2 }` under `policies` of the backend',
    loadBalancer: 'the endpoint picker chooses: remove it',
    subjectAltNames: MESH,
    waypoint: MESH,
    weightedWaypoints: MESH,
    ingressUseWaypoint: MESH,
    ipFamilies: MESH,
  },
});

const NAMESPACE = z.string().default('default');

/** A policy that is written apart from what it applies to. */
export const attachedPolicySchema = mapping(
  'A policy for a gateway, listener, route or backend that is written elsewhere.',
  {
    name: mapping('Name of the policy. It keeps its state across reloads.', {
      name: nonEmpty.describe('Name.'),
      namespace: NAMESPACE.describe('Namespace.'),
    }),
    target: mapping('What the policy applies to.', {
      gateway: mapping('All requests, or those of a listener or port.', {
        gatewayName: z.string().default('default').describe('Always `default`: the whole program.'),
        gatewayNamespace: NAMESPACE.describe('Always `default`.'),
        listenerName: nonEmpty.optional().describe('Listener, as logs name it; all listeners by default.'),
        port: port.optional().describe('Port, instead of a listener.'),
      }).optional(),
      route: mapping('The routes with this name.', {
        name: nonEmpty.describe('Name of the route.'),
        namespace: NAMESPACE.describe('Its namespace.'),
      })
        .meta({ elsewhere: { ruleName: RULE_NAME, kind: 'every route is an HTTP route: remove it' } })
        .optional(),
      backend: mapping('One of the top-level `backends`.', {
        backend: mapping('A backend.', {
          name: nonEmpty.describe('Name of one of the top-level `backends`.'),
          namespace: z.string().default('').describe('Always empty.'),
        }).meta({ elsewhere: { section: 'write the policy under `policies` of the provider or target' } }),
      })
        .meta({
          elsewhere: { service: 'services exist only in Kubernetes: write the policy at the backend' },
        })
        .optional(),
    }).meta({
      elsewhere: { listenerSet: 'listener sets exist only in Kubernetes: name a listener with `gateway`' },
    }),
    phase: choice(
      'When it runs: after routing, or before (`gateway`, for a target `gateway` only).',
      ['route', 'gateway'],
      'route',
    ),
    policy: policiesSchema.describe('The policy: exactly one.'),
  },
);

export const attachedRouteSchema = mapping('A route that names its gateways.', {
  gateways: gatewayReference
    .optional()
    .describe(
      'Gateways that this route belongs to, as `name` or, for one of its listeners, `name/listener`; by default, the gateway named `default`.',
    ),
  ...routeFields,
}).meta(routeMeta);

export const attachedTcpRouteSchema = mapping('A route for connections that names its gateways.', {
  gateways: gatewayReference
    .optional()
    .describe(
      'Gateways that this route belongs to, as in `routes`; by default, the gateway named `default`.',
    ),
  ...tcpRouteFields,
}).meta(tcpRouteMeta);

/** Protocols of listeners. `config/plan/protocols.ts` says how they can be used. */
const PROTOCOLS = ['HTTP', 'HTTPS', 'TLS', 'TCP', 'HBONE'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

const listenerFields = {
  name: name.optional().describe('Name of the listener; `listenerN` by default.'),
  hostname: z
    .string()
    .regex(/^(?:\*|(?:\*\.)?[A-Za-z0-9.-]+)$/, {
      error: 'expected a host name such as `api.example.com`, `*.example.com` or `*`',
    })
    .optional()
    .describe(
      'Host name that this listener serves, `*.example.com` for all names below it; any host by default. The most specific listener of a port handles a request.',
    ),
  protocol: z
    .enum(PROTOCOLS)
    .optional()
    .describe('Protocol of the listener; `HTTPS` if `tls` is set, otherwise `HTTP`.'),
  tls: serverTlsSchema.optional(),
};

const routes = z.array(routeSchema).default([]);

const gatewayListenerSchema = mapping('One of several listeners of a port, for some of its hosts.', {
  ...listenerFields,
  ...policiesAt('gateway'),
}).meta({
  elsewhere: {
    ...elsewhereThan('gateway'),
    routes: 'write them at the top level, with `gateways: gateway/listener`',
  },
});

export const gatewaySchema = mapping(
  'A port that the gateway listens on. Policies written here run before routing.',
  {
    port: port.describe('Port to listen on. 0 selects any free port.'),
    protocol: z
      .enum(PROTOCOLS)
      .optional()
      .describe('Protocol of the gateway; `HTTPS` if `tls` is set, otherwise `HTTP`.'),
    tls: serverTlsSchema.optional(),
    address: z
      .union([z.ipv4(), z.ipv6()])
      .optional()
      .describe('IP address to listen on; all addresses of the machine by default.'),
    listeners: z
      .array(gatewayListenerSchema)
      .min(1)
      .optional()
      .describe('Listeners for different hosts. By default, the gateway is one listener for all hosts.'),
    ...policiesAt('gateway'),
    routes: routes.describe('Routes of this gateway.'),
  },
).meta({ elsewhere: elsewhereThan('gateway') });

const bindListenerSchema = mapping('A listener of a port.', {
  ...listenerFields,
  policies: mapping('Policies that run before routing.', policiesAt('gateway'))
    .meta({ elsewhere: elsewhereThan('gateway') })
    .optional(),
  routes: routes.describe('Routes of this listener.'),
  tcpRoutes: list('Routes of this listener, if its protocol is `TCP` or `TLS`.', tcpRouteSchema),
}).meta({ elsewhere: { namespace: 'listeners are named by `name` alone: remove it' } });

export const bindSchema = mapping('A port with its listeners.', {
  port: port.describe('Port to listen on. 0 selects any free port.'),
  tunnelProtocol: z
    .enum(['direct', 'connect'], {
      error:
        'only `direct` and `connect` are supported: clients connect without HBONE and the PROXY protocol',
    })
    .default('direct')
    .describe(
      '`connect`: clients send CONNECT requests, whose tunnels lead to the ports of this gateway that they name: those on all addresses of the machine, and internal ones. Such a bind has no listeners.',
    ),
  mode: choice(
    '`internal`: the port is not opened, and only tunnels lead to it.',
    ['standard', 'internal'],
    'standard',
  ),
  listeners: z.array(bindListenerSchema).describe('Listeners of the port.'),
}).superRefine(({ tunnelProtocol, mode, listeners, port: number }, context) => {
  const report = (path: string, message: string, help: string): void =>
    context.addIssue({ code: 'custom', path: [path], message, params: { code: 'AGW0105', help } });
  if (tunnelProtocol === 'direct' && listeners.length === 0)
    report('listeners', 'the list must not be empty', 'add a listener, or set `tunnelProtocol: connect`');
  if (tunnelProtocol === 'connect' && listeners.length > 0)
    report(
      'listeners',
      'a bind with `tunnelProtocol: connect` has no listeners',
      'write `listeners: []`, and move them to a bind with the port that clients name',
    );
  if (mode === 'internal' && (tunnelProtocol === 'connect' || number === 0))
    report(
      'mode',
      'an internal bind needs a port that clients can name',
      'set `port`, and `tunnelProtocol` of another bind',
    );
});
