import type { Config } from '../config/schema.ts';
import { compileNetworkAuthorization } from '../expressions/network-authorization.ts';
import { requestScope } from '../expressions/scopes.ts';
import type { Expression } from '../kernel/expression.ts';
import { resolveConfigFile } from '../kernel/files/config-file.ts';
import { fileVersion } from '../kernel/files/file-version.ts';
import type { ClientConnection } from '../kernel/request/client-connection.ts';
import { loadCatalogs } from '../llm/cost/catalog.ts';
import { compileAccessLogPolicy } from '../observe/access-log.ts';
import { compileMetricsPolicy } from '../observe/metrics/policy.ts';
import { compileAccessLogExport } from '../observe/otlp/access-log-export.ts';
import { compileMetricsExport } from '../observe/otlp/metrics-export.ts';
import { compileTracing, resourceSettings } from '../observe/otlp/settings.ts';
import { logScope } from '../observe/scopes.ts';
import { compileNetworkExtAuthz } from '../policies/ext-authz/network.ts';
import { recordPolicy } from '../record/policy.ts';
import { type ContextOptions, createContext } from './compile-context.ts';
import type { ComponentCache } from './component-cache.ts';
import { LogReads } from './log-reads.ts';

/** Compiles what all routes share. */
export function compileShared(
  loaded: Config,
  config: Config,
  options: ContextOptions,
  components: ComponentCache,
) {
  const expressions: Expression[] = [];
  const site = (...path: string[]) => ({ options, path, hostnames: NO_NAMES, expressions });
  const context = (...path: string[]) => createContext(options, path, NO_NAMES, expressions);
  const { tracing } = components.get(
    'tracing',
    [config.config.tracing, config.frontendPolicies.tracing],
    site(),
    (inside) => ({ tracing: compileTracing(config, inside) }),
  );
  // A catalog can be large, so it is read again only if one of its files has changed.
  const { catalog } = components.get(
    'modelCatalog',
    [config.config.modelCatalog, catalogFiles(config, options.folder).map(fileVersion)],
    site('config', 'modelCatalog'),
    (inside) => ({ catalog: loadCatalogs(config.config.modelCatalog, inside) }),
  );
  // Compiled even on a reload, which does not apply it, so that its problems are reported.
  const metricsPolicy = compileMetricsPolicy(loaded.config.metrics, context('config', 'metrics'));
  const accessLog = compileAccessLogPolicy(
    config.frontendPolicies.accessLog,
    context('frontendPolicies', 'accessLog'),
  );
  // For its problems: the pages of `ui` compile it for themselves.
  const claim = config.config.adminRoles?.claim;
  if (claim !== undefined) context('config', 'adminRoles', 'claim').cel(claim, requestScope);
  const { otlp } = config.frontendPolicies.accessLog;
  const resource = resourceSettings(config, options);
  const exporting =
    otlp &&
    components.get(
      'accessLog.otlp',
      [otlp, resource],
      site('frontendPolicies', 'accessLog', 'otlp'),
      (inside) => {
        const accessLogExport = compileAccessLogExport(otlp, resource, inside);
        return { accessLogExport, close: () => accessLogExport?.close() };
      },
    );
  const { otlp: metricsTo } = config.config.metrics;
  const exported =
    metricsTo &&
    components.get('metrics.otlp', [metricsTo, resource], site('config', 'metrics', 'otlp'), (inside) => {
      const metricsExport = compileMetricsExport(metricsTo, resource, inside);
      return { metricsExport, close: () => metricsExport?.close() };
    });
  const record = recordPolicy(config, logScope, context('frontendPolicies', 'accessLog', 'database'));
  const { networkAuthorization, networkExtAuthz } = config.frontendPolicies;
  const admits =
    networkAuthorization &&
    compileNetworkAuthorization(networkAuthorization, context('frontendPolicies', 'networkAuthorization'));
  const authorizer =
    networkExtAuthz &&
    components.get(
      'networkExtAuthz',
      networkExtAuthz,
      site('frontendPolicies', 'networkExtAuthz'),
      (inside) => compileNetworkExtAuthz(networkExtAuthz, inside),
    );
  const authorizes =
    authorizer && ((client: ClientConnection, gone: AbortSignal) => authorizer.authorize(client, gone));
  const logReads = new LogReads(record === undefined ? expressions : [...expressions, record]);
  return {
    tracing,
    catalog,
    metricsPolicy,
    accessLog,
    accessLogExport: exporting?.accessLogExport,
    metricsExport: exported?.metricsExport,
    record,
    admits,
    authorizes,
    logReads,
  };
}

const NO_NAMES: ReadonlySet<string> = new Set();

/** Absolute paths of the files with prices. */
export function catalogFiles({ config }: Config, folder: string): string[] {
  return config.modelCatalog.flatMap((entry) =>
    'file' in entry ? [resolveConfigFile(folder, entry.file)] : [],
  );
}
