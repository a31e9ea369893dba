import { fileURLToPath } from 'node:url';

// Configurations for tests, built as JSON: JSON is YAML, and nothing needs quoting.

const chaosChild = fileURLToPath(new URL('./chaos-child.mjs', import.meta.url));

/** A stdio target that runs the chaos child with these flags, under the same name. */
export function chaos(
  name: string,
  ...flags: string[]
): { name: string; stdio: { cmd: string; args: string[] } } {
  return { name, stdio: { cmd: process.execPath, args: [chaosChild, `--name=${name}`, ...flags] } };
}

interface Parts {
  /** Members of the MCP backend beside its targets. */
  readonly backend?: object;
  /** Members of the route beside its backends. */
  readonly route?: object;
  /** The `config` section. */
  readonly config?: object;
  readonly frontendPolicies?: object;
}

/** A configuration with one free port, whose only route leads to these targets. Open calls hardly delay its end. */
export function mcpConfig(
  targets: readonly object[],
  { backend, route, config, frontendPolicies }: Parts = {},
): string {
  const routes = [{ ...route, backends: [{ mcp: { ...backend, targets } }] }];
  return JSON.stringify({
    config: { adminAddr: 'off', connectionTerminationDeadline: '100ms', ...config },
    ...(frontendPolicies && { frontendPolicies }),
    gateways: { default: { port: 0, routes } },
  });
}
