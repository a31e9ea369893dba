import type { AdminServer } from '../admin/server.ts';
import type { LogFields } from '../core/log.ts';
import { VERSION } from '../core/version.ts';
import { openBackends } from '../server/config/open-backends.ts';
import { knownBackends } from '../server/config/plan/backend-kinds.ts';
import { originOf } from '../server/config/plan/origin.ts';
import { type GatewayPlan, type RoutePlan, routesOf } from '../server/config/plan/plan.ts';
import type { Config } from '../server/config/schema.ts';
import { workerCount } from '../server/config/workers.ts';
import type { Gateway } from '../server/runtime/gateway.ts';
import { partsOf } from './connect/endpoint.ts';
import { policyOfModels } from './proxy/dump-parts.ts';

interface BannerFacts {
  readonly file: string;
  /** File of variables. */
  readonly envFile?: string | undefined;
  readonly warnings: string;
  readonly gateway: Pick<Gateway, 'listeners'>;
  readonly admin: AdminServer | undefined;
  readonly config: Config;
  readonly ms: number;
}

/** Routes of one gateway that are shown: a terminal keeps the beginning in sight. */
const SHOWN_ROUTES = 20;

/** The text that `serve` prints on stderr when it is ready: where everything is, and how to stop it. */
export function banner({ file, envFile, warnings, gateway, admin, config, ms }: BannerFacts): string {
  const lines = [
    `agctl ${VERSION}   ${file}   valid${warnings}${envFile === undefined ? '' : `   variables of ${envFile}`}`,
    '',
  ];
  for (const {
    gateway: { plan },
    port,
  } of gateway.listeners) {
    lines.push(
      `  gateway ${plan.name.padEnd(12)} ${urlOf(plan, port)}${plan.address === undefined ? '   (all addresses of this machine)' : ''}`,
    );
    const routes = routesOf(plan);
    for (const route of routes.slice(0, SHOWN_ROUTES)) {
      lines.push(`    ${paths(route).padEnd(17)} ${target(route)}`);
      for (const { path, name } of partsOf(route)) lines.push(`    ${path.padEnd(17)}   bundle ${name}`);
    }
    const others = routes.length - SHOWN_ROUTES;
    if (others > 0) lines.push(`    and ${others.toLocaleString('en-US')} more routes`);
    for (const exposed of new Set(openBackends(plan).map(({ exposes }) => exposes)))
      lines.push(`    ! anyone who reaches port ${port} can ${exposed} (AGW0312)`);
  }
  if (admin !== undefined)
    lines.push(
      `  admin server         ${admin.url === undefined ? admin.addresses.join(' ') : `${admin.url}/ui`}`,
    );
  const seconds = config.config.connectionTerminationDeadline / 1000;
  const count = workerCount(config);
  const workers = count === 1 ? '' : ` with ${count} workers`;
  lines.push(
    '',
    `ready in ${Math.round(ms)} ms${workers}. Ctrl-C stops after open requests finish (at most ${seconds} s); a second Ctrl-C stops now.`,
    '',
  );
  return lines.join('\n');
}

/** The same as fields of a log line, for programs that read the log. */
export function readyFields({ file, envFile, gateway, admin, ms }: BannerFacts): LogFields {
  const urls = gateway.listeners.map(({ gateway: { plan }, port }) => `${plan.name}=${urlOf(plan, port)}`);
  return {
    file,
    ...(envFile === undefined ? {} : { variables: envFile }),
    version: VERSION,
    gateways: urls.join(' '),
    ...(admin === undefined ? {} : { admin: admin.url ?? admin.addresses.join(' ') }),
    ms: Math.round(ms),
  };
}

/** With the protocol of its first listener: only `HTTPS` and `TLS` can share a port. */
function urlOf({ address, listeners }: GatewayPlan, port: number): string {
  return originOf({ address, protocol: listeners[0]?.protocol, port });
}

function paths({ config }: RoutePlan): string {
  const all = (config.matches ?? [{ path: { pathPrefix: '/' } }]).map(({ path }) =>
    Object.values(path).find((value) => value !== undefined),
  );
  return all.join(', ');
}

/** The backends of a route, and the policies in front of them and of their own. */
function target({ backends: all, policies: ofRoute }: RoutePlan): string {
  const known = knownBackends(all);
  const backends = known.map(({ kind, settings }) => kind.describe(settings));
  const own = known.flatMap(({ kind, settings }) => kind.ownPolicies?.(settings) ?? []);
  const ofModels = own.filter(({ model }) => model !== undefined);
  const keys = [
    ...[...ofRoute, ...all.flatMap(({ policies }) => policies)].map(({ key }) => key),
    ...own.flatMap(({ key, model }) => (model === undefined ? [key] : [])),
    ...ofModels.map(({ key }) => policyOfModels(key, ofModels.filter((other) => other.key === key).length)),
  ];
  const policies = [...new Set(keys)].join(', ');
  return `${backends.join(' | ')}${policies === '' ? '' : `   [${policies}]`}`;
}
