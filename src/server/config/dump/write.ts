import { setImmediate as nextTurn } from 'node:timers/promises';
import { LIMITS } from '../../../core/limits.ts';
import type { Redactor } from '../../../core/redact.ts';
import { type GatewayPlan, planGateways, type RoutePlan } from '../plan.ts';
import type { Config } from '../schema.ts';
import { type BackendFacts, backendsOf, modelsOf } from './backends.ts';
import { bindHead, dumpRoute, listenerHead } from './binds.ts';
import { frontendPolicies } from './policies.ts';
import { dumpSettings, dumpVersion } from './settings.ts';

export interface DumpOptions {
  /** The configuration that serves, with its marked secrets redacted. */
  readonly config: Config;
  readonly redactor: Redactor;
  /** The port that is open for a gateway: another than configured when that is 0. */
  portOf(gateway: string): number | undefined;
  readonly endpointInfo: BackendFacts['endpointInfo'];
}

/**
 * `GET /config_dump` as pretty JSON of two spaces, in pieces: other work has its turn between two, and nothing
 * holds the whole text. Shape and order: `core/config-dump.ts`.
 */
export async function* writeConfigDump(options: DumpOptions): AsyncGenerator<string> {
  let piece = '';
  for (const text of dumpTexts(options)) {
    piece += text;
    if (piece.length < LIMITS.dumpPiece) continue;
    yield piece;
    piece = '';
    await nextTurn();
  }
  yield piece;
}

type Pair = readonly [gateway: GatewayPlan, route: RoutePlan];

function* dumpTexts({ config, redactor, portOf, endpointInfo }: DumpOptions): Generator<string> {
  const gateways = planGateways(config).gateways.toSorted(byKey);
  const facts: BackendFacts = { sessionIdle: config.config.mcp.sessionTtl, endpointInfo };
  const pairs: Pair[] = gateways.flatMap((gateway) => gateway.routes.map((route): Pair => [gateway, route]));
  const clean = (value: unknown): unknown => redactor.value(value);
  yield '{\n  "workloads": [],\n  "services": [],\n  "binds": ';
  yield* list(2, bindTexts(gateways, portOf, clean));
  yield ',\n  "routes": {\n    "httpMesh": {},\n    "tcpMesh": {},\n    "routeGroups": {}\n  },\n  "policies": ';
  yield* list(2, texts(4, frontendPolicies(config), clean));
  yield ',\n  "backends": ';
  yield* list(2, texts(4, uniqueBackends(pairs, facts), clean));
  yield ',\n  "models": ';
  yield* list(2, texts(4, each(pairs, modelsOf), clean));
  yield `,\n  "version": ${pretty(dumpVersion(), 2)},\n  "config": ${pretty(clean(dumpSettings(config)), 2)}\n}`;
}

/** A bind at a time, its routes one by one: one gateway may have thousands. */
function* bindTexts(
  gateways: readonly GatewayPlan[],
  portOf: DumpOptions['portOf'],
  clean: (value: unknown) => unknown,
): Generator<Generator<string>> {
  for (const gateway of gateways) {
    const listener = listenerHead(gateway);
    const routes = gateway.routes.map((route) => () => clean(dumpRoute(gateway, route)) as { key: string });
    yield (function* () {
      yield opened(bindHead(gateway, portOf(gateway.name) ?? gateway.port), 4);
      yield `,\n      "listeners": {\n        ${JSON.stringify(listener['key'])}: `;
      yield opened(clean(listener) as object, 8);
      if (routes.length > 0) {
        yield ',\n          "routes": {';
        for (const [index, build] of routes.entries()) {
          const route = build();
          yield `${index === 0 ? '' : ','}\n            ${JSON.stringify(route.key)}: ${pretty(route, 12)}`;
        }
        yield '\n          }';
      }
      yield '\n        }\n      }\n    }';
    })();
  }
}

/** The same backend stands behind several routes when a top-level section is on several gateways. */
function* uniqueBackends(pairs: readonly Pair[], facts: BackendFacts): Generator<object> {
  const seen = new Set<string>();
  for (const [gateway, route] of pairs) {
    for (const item of backendsOf(gateway, route, facts)) {
      const [body] = Object.values(item.backend);
      const key = `${Object.keys(item.backend)[0]} ${body?.name}`;
      if (seen.has(key)) continue;
      seen.add(key);
      yield item;
    }
  }
}

function* each<T>(
  pairs: readonly Pair[],
  of: (gateway: GatewayPlan, route: RoutePlan) => Iterable<T>,
): Generator<T> {
  for (const [gateway, route] of pairs) yield* of(gateway, route);
}

function* texts(
  indent: number,
  values: Iterable<unknown>,
  clean: (value: unknown) => unknown,
): Generator<Iterable<string>> {
  for (const value of values) yield [pretty(clean(value), indent)];
}

/** A JSON list of items that are given in pieces. */
function* list(indent: number, items: Iterable<Iterable<string>>): Generator<string> {
  let isEmpty = true;
  yield '[';
  for (const item of items) {
    yield `${isEmpty ? '' : ','}\n${' '.repeat(indent + 2)}`;
    isEmpty = false;
    yield* item;
  }
  yield isEmpty ? ']' : `\n${' '.repeat(indent)}]`;
}

function pretty(value: unknown, indent: number): string {
  return JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(indent)}`);
}

/** An object without its closing brace, so that members can follow. */
function opened(value: object, indent: number): string {
  return pretty(value, indent).slice(0, -indent - 2);
}

/** As texts: upstream sorts binds by their key, `bind/<port>`. */
function byKey(a: GatewayPlan, b: GatewayPlan): number {
  const [first, second] = [String(a.port), String(b.port)];
  return first === second ? 0 : first < second ? -1 : 1;
}
