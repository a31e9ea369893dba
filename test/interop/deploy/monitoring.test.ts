import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { prometheusAlerts } from '../../../src/cli/monitoring/alerts.ts';
import { grafanaDashboard } from '../../../src/cli/monitoring/dashboard.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { until } from '../../kit/until.ts';
import { DEPLOY, prometheus, promtool, tool, toolWith } from './tools.ts';

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** The queries of the dashboard, as Grafana sends them. */
const queries = (JSON.parse(grafanaDashboard()) as { panels: readonly Panel[] }).panels.flatMap(
  ({ targets = [] }) =>
    targets.map(({ expr }) =>
      expr.replaceAll('$__rate_interval', '5s').replaceAll('$job', '.*').replaceAll('$instance', '.*'),
    ),
);

/** Values of one series in each minute, and the alerts expected at a time. */
const firing = (series: string, values: string, alert: string, at: string, labels: object) => ({
  interval: '1m',
  input_series: [{ series, values }],
  alert_rule_test: [{ eval_time: at, alertname: alert, exp_alerts: [{ exp_labels: labels }] }],
});

const certificate = (metric: string): string => `gw_tls_certificate_${metric}{instance="a", file="tls.crt"}`;
const OF_CERTIFICATE = { severity: 'critical', instance: 'a', file: 'tls.crt' };

describe('Prometheus', () => {
  test('promtool accepts the alert rules, and the configuration of compose.yaml', async () => {
    const rules = await tool(promtool, ['check', 'rules', 'prometheus/alerts.yaml']);
    const count = readFileSync(`${DEPLOY}prometheus/alerts.yaml`, 'utf8').match(/- alert:/g)?.length;
    expect(rules.text).toContain(`SUCCESS: ${count} rules found`);
    await using folder = await temporaryFolder();
    copyFileSync(`${DEPLOY}prometheus/alerts.yaml`, join(folder.path, 'alerts.yaml'));
    copyFileSync(`${DEPLOY}compose/prometheus.yaml`, join(folder.path, 'prometheus.yaml'));
    const config = await tool(promtool, ['check', 'config', 'prometheus.yaml'], folder.path);
    expect(config.code, config.text).toBe(0);
  });

  test('promtool accepts every query of the dashboard', async () => {
    await using folder = await temporaryFolder();
    expect(queries.length).toBeGreaterThan(30);
    const rules = queries.map((expr, index) => ({ record: `dashboard:query:${index}`, expr }));
    writeFileSync(join(folder.path, 'rules.yaml'), stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { code, text } = await tool(promtool, ['check', 'rules', 'rules.yaml'], folder.path);
    expect(code, text).toBe(0);
  });

  test('alerts fire for what they are about, and not before their time', async () => {
    await using folder = await temporaryFolder();
    copyFileSync(`${DEPLOY}prometheus/alerts.yaml`, join(folder.path, 'alerts.yaml'));
    const quiet = (series: string, values: string, alert: string) => ({
      interval: '1m',
      input_series: [{ series, values }],
      alert_rule_test: [{ eval_time: '90m', alertname: alert, exp_alerts: [] }],
    });
    const tests = [
      firing('up{job="agctl", instance="a"}', '1x5 0x10', 'AgctlDown', '9m', {
        severity: 'critical',
        job: 'agctl',
        instance: 'a',
      }),
      quiet('up{job="agctl", instance="a"}', '1x100', 'AgctlDown'),
      firing('gw_requests_total{backend="b", status="502"}', '0+60x60', 'AgctlErrors', '30m', {
        severity: 'critical',
        backend: 'b',
      }),
      quiet('gw_requests_total{backend="b", status="200"}', '0+60x100', 'AgctlErrors'),
      firing('gw_config_synchronized{instance="a"}', '0x30', 'AgctlConfigRejected', '10m', {
        severity: 'warning',
        instance: 'a',
      }),
      // A series begins with its first count: the first changed tool must not be missed.
      firing('gw_mcp_tool_changes_total{server="s"}', '_x10 1x10', 'AgctlToolChanged', '15m', {
        severity: 'warning',
        server: 's',
      }),
      quiet('gw_mcp_tool_changes_total{server="s"}', '1x120', 'AgctlToolChanged'),
      firing('gw_worker_restarts_total{instance="a"}', '0+1x30', 'AgctlWorkersEnd', '20m', {
        severity: 'warning',
        instance: 'a',
      }),
      // A renewal writes the certificate and then the key: what is read between them cannot be used.
      firing(certificate('synchronized'), '1 0x30', 'AgctlCertificateNotRead', '10m', OF_CERTIFICATE),
      quiet(certificate('synchronized'), '1x80 0x2 1x20', 'AgctlCertificateNotRead'),
      quiet(certificate('synchronized'), '0x20 1x80', 'AgctlCertificateNotRead'),
      // The tests of promtool begin in 1970: these expire after six days, and after eight.
      firing(
        certificate('expiry_timestamp_seconds'),
        '518400x30',
        'AgctlCertificateExpires',
        '10m',
        OF_CERTIFICATE,
      ),
      quiet(certificate('expiry_timestamp_seconds'), '691200x100', 'AgctlCertificateExpires'),
      firing('gw_access_log_records_lost_total{instance="a"}', '0x5 1x20', 'AgctlLogRecordsLost', '10m', {
        severity: 'warning',
        instance: 'a',
      }),
      quiet('gw_access_log_records_lost_total{instance="a"}', '7x100', 'AgctlLogRecordsLost'),
      firing(
        'gw_audit_failures_total{instance="a", sink="file"}',
        '0x5 1x20',
        'AgctlAuditNotWritten',
        '10m',
        { severity: 'critical', instance: 'a', sink: 'file' },
      ),
      quiet('gw_audit_failures_total{instance="a", sink="file"}', '7x100', 'AgctlAuditNotWritten'),
      ...[
        ['gw_audit_refusals_omitted_total', 'AgctlAuditRefusalsOmitted', 'warning'],
        ['gw_request_records_lost_total', 'AgctlRecordsLost', 'warning'],
        ['gw_budget_database_failures_total', 'AgctlBudgetDatabaseFails', 'critical'],
      ].flatMap(([name = '', alert = '', severity]) => [
        firing(`${name}{instance="a"}`, '0x5 1x20', alert, '10m', { severity, instance: 'a' }),
        quiet(`${name}{instance="a"}`, '7x100', alert),
      ]),
      firing('gw_shared_store_available{instance="a"}', '1x5 0x10', 'AgctlSharedStoreDown', '8m', {
        severity: 'critical',
        instance: 'a',
      }),
      quiet('gw_shared_store_available{instance="a"}', '1x100', 'AgctlSharedStoreDown'),
    ];
    // Only names and labels matter here; promtool compares annotations, too.
    writeFileSync(join(folder.path, 'bare.yaml'), withoutAnnotations());
    writeFileSync(
      join(folder.path, 'tests.yaml'),
      stringify({ rule_files: ['bare.yaml'], evaluation_interval: '1m', tests }),
    );
    const { code, text } = await tool(promtool, ['test', 'rules', 'tests.yaml'], folder.path);
    expect(code, text).toBe(0);
  });

  test.each([
    ['one process', undefined],
    ['two workers', 2],
  ])('promtool has no complaint about the metrics of %s in the format that it reads', async (_, workers) => {
    await using served = await serve(
      routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { workers } }),
      { env: { STATS_ADDR: '127.0.0.1:0' } },
    );
    await (await fetch(served.url)).text();
    const stats = /address="(\S+)" component="stats"/.exec(served.stderr)?.[1] as string;
    const headers = { accept: 'text/plain; version=0.0.4' };
    const metrics = await (await fetch(`http://${stats}/metrics`, { headers })).text();
    expect(metrics).toContain('gw_requests_total{');
    const { code, text } = await toolWith(metrics, promtool, ['check', 'metrics']);
    expect([code, text]).toEqual([0, '']);
    // It does see mistakes.
    const wrong = metrics.replace('# HELP gw_requests_total ', '# HELP gw_requests ');
    expect((await toolWith(wrong, promtool, ['check', 'metrics'])).code).not.toBe(0);
  });

  test('Prometheus scrapes the gateway, and the dashboard has values for its requests', async () => {
    await using folder = await temporaryFolder();
    await using served = await serve(
      routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { workers: 2 } }),
      { env: { STATS_ADDR: '127.0.0.1:0' } },
    );
    const stats = /address="(\S+)" component="stats"/.exec(served.stderr)?.[1] as string;
    const scrape = { job_name: 'agctl', scrape_interval: '1s', static_configs: [{ targets: [stats] }] };
    writeFileSync(join(folder.path, 'prometheus.yml'), stringify({ scrape_configs: [scrape] }));
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      prometheus,
      ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${address}`],
      { cwd: folder.path, stdio: 'ignore' },
    );
    try {
      const ask = async (query: string): Promise<readonly { value: [number, string] }[]> => {
        const url = `http://${address}/api/v1/query?query=${encodeURIComponent(query)}`;
        const response = await fetch(url).catch(() => undefined);
        if (response?.ok !== true) return [];
        return ((await response.json()) as { data: { result: { value: [number, string] }[] } }).data.result;
      };
      for (const wanted of [
        'gw_requests_total',
        'request_duration_seconds_bucket',
        'gw_workers',
        'process_cpu',
      ]) {
        const query = queries.find((each) => each.includes(wanted)) as string;
        await until(async () => {
          await (await fetch(served.url)).text();
          const [first] = await ask(query);
          return Number(first?.value[1]) > 0;
        }, 30_000);
      }
    } finally {
      child.kill('SIGKILL');
    }
  });
});

/** The alert rules with labels alone. */
function withoutAnnotations(): string {
  const { groups } = parse(prometheusAlerts()) as {
    groups: { name: string; rules: { annotations: object }[] }[];
  };
  const bare = groups.map((group) => ({
    ...group,
    rules: group.rules.map(({ annotations, ...rule }) => rule),
  }));
  return stringify({ groups: bare });
}
