import { availableParallelism } from 'node:os';
import type { DumpVersion } from '../../../core/config-dump.ts';
import { goDuration } from '../../../core/go-duration.ts';
import { isLoopback, parseListenAddress } from '../../../core/listen.ts';
import { VERSION } from '../../../core/version.ts';
import type { Config } from '../schema.ts';

/** There is no compiler and no build profile here; the keys are part of the wire format. */
export function dumpVersion(): DumpVersion {
  return {
    version: VERSION,
    git_revision: 'n/a',
    rust_version: 'n/a',
    build_profile: 'release',
    build_target: `node-${process.version}-${process.platform}-${process.arch}`,
  };
}

/** Settings of the process, in upstream's names; those that have no meaning here are left out. */
export function dumpSettings({ config, frontendPolicies }: Config): Readonly<Record<string, unknown>> {
  const { logging, metrics, tracing, mcp, modelCatalog, session, connectionTerminationDeadline, ...others } =
    config;
  const { add, remove, filter } = frontendPolicies.accessLog;
  return {
    ipv6Enabled: true,
    terminationMaxDeadline: goDuration(connectionTerminationDeadline),
    numWorkerThreads: 1,
    availableCpus: availableParallelism(),
    ...Object.fromEntries(Object.entries(others).map(([key, value]) => [key, addressOf(key, value)])),
    tracing: tracing.otlpEndpoint === undefined ? null : dumpTracing(tracing),
    metrics: { metric_fields: metrics.fields, excluded_metrics: metrics.remove },
    logging: {
      filter: filter ?? null,
      fields: { remove, add },
      level: logging.level,
      format: logging.format,
    },
    sessionEncoder: session.key === undefined ? 'process' : 'aes',
    mcp: {
      sessionTtl: goDuration(mcp.sessionTtl),
      maxSessions: mcp.maxSessions,
      maxChildren: mcp.maxChildren,
    },
    modelCatalog: { sources: modelCatalog },
  };
}

/** snake_case islands are upstream's. */
function dumpTracing(tracing: Config['config']['tracing']): Readonly<Record<string, unknown>> {
  const { otlpEndpoint, otlpProtocol, headers, fields, randomSampling, clientSampling, path } = tracing;
  return {
    endpoint: otlpEndpoint,
    headers,
    protocol: otlpProtocol,
    fields,
    random_sampling: randomSampling,
    client_sampling: clientSampling,
    path,
  };
}

/**
 * Addresses are tagged values: `{"SocketAddr": "[::]:15020"}` for one address, `{"Localhost": [true, 15000]}` for both
 * loopback addresses, `{"UnixSocket": "/run/agctl.sock"}`, `"Off"`.
 */
function addressOf(key: string, value: unknown): unknown {
  const address = key.endsWith('Addr') && typeof value === 'string' ? parseListenAddress(value) : undefined;
  if (address === undefined) return value;
  if (address.kind === 'off') return 'Off';
  if (address.kind === 'unix') return { UnixSocket: address.path };
  const { hosts, port } = address;
  if (hosts.length > 1 && hosts.every(isLoopback)) return { Localhost: [true, port] };
  const [host = ''] = hosts;
  return { SocketAddr: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}` };
}
