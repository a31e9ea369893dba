import { elementsOf, isRecord, membersOf, numberIn, stringIn, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestFields } from '../../../core/requests/finished.ts';

// What the screen of `agctl top` shows of `/api/overview` and `/api/requests/open`. The server may be of another version, or
// none of a gateway: members of another type count as missing.

/** A request in flight. */
export interface OpenRow {
  readonly key: string;
  /** In ms since 1970. */
  readonly startedAt: number;
  readonly fields: RequestFields;
}

export interface OpenRequests {
  /** Oldest first. */
  readonly open: readonly OpenRow[];
  /** Number of requests in flight, of which the gateway lists some. */
  readonly openCount: number;
}

/** Reads `/api/requests/open`; undefined if it is something else. */
export function openRequestsIn(json: unknown): OpenRequests | undefined {
  const { requests, total } = membersOf(json);
  if (!Array.isArray(requests)) return undefined;
  const open = requests.slice(0, LIMITS.topRequests).flatMap((each): OpenRow[] => {
    const { worker, key, startedAt, fields } = membersOf(each);
    const at = Date.parse(textIn(startedAt));
    if (Number.isNaN(at) || !isRecord(fields)) return [];
    return [{ key: `open-${textIn(worker)}-${numberIn(key) ?? ''}`, startedAt: at, fields }];
  });
  return { open, openCount: numberIn(total) ?? open.length };
}

export interface BackendState {
  readonly isMcp: boolean;
  readonly sessions: number;
  /** MCP servers that are not available. */
  readonly failing: readonly { readonly name: string; readonly problem: string | undefined }[];
  readonly models: readonly { readonly name: string; readonly failures: number }[];
}

export interface GatewayState {
  /** In ms since 1970, by the clock of the gateway. */
  readonly startedAt: number;
  readonly uptimeSeconds: number;
  /** Services of the gateway itself that do not answer, by their place in the configuration. */
  readonly outages: readonly { readonly at: string; readonly problem: string }[];
  readonly backends: readonly BackendState[];
}

/** Reads `/api/overview`; undefined if it is something else. */
export function gatewayStateIn(json: unknown): GatewayState | undefined {
  const { startedAt, uptimeSeconds, outages, gateways } = membersOf(json);
  const at = Date.parse(textIn(startedAt));
  const uptime = numberIn(uptimeSeconds);
  if (Number.isNaN(at) || uptime === undefined) return undefined;
  const backends = elementsOf(gateways)
    .flatMap((gateway) => elementsOf(membersOf(gateway)['routes']))
    .flatMap((route) => elementsOf(membersOf(route)['backends']))
    .map(backendIn);
  const away = elementsOf(outages)
    .map(membersOf)
    .map((outage) => ({ at: textIn(outage['at']), problem: textIn(outage['problem']) }));
  return { startedAt: at, uptimeSeconds: uptime, outages: away, backends };
}

function backendIn(json: unknown): BackendState {
  const { api, sessions, targets, models } = membersOf(json);
  return {
    isMcp: api === 'mcp',
    sessions: numberIn(sessions) ?? 0,
    failing: elementsOf(targets)
      .map(membersOf)
      .filter(({ state }) => state === 'failing')
      .map(({ name, problem }) => ({ name: textIn(name), problem: stringIn(problem) })),
    models: elementsOf(models)
      .map(membersOf)
      .map(({ name, failures }) => ({ name: textIn(name), failures: numberIn(failures) ?? 0 })),
  };
}
