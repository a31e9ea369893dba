import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';

// Configurations for tests, built as JSON: JSON is YAML, and nothing needs quoting.

export interface RouteParts {
  readonly name?: string;
  readonly hostnames?: readonly string[];
  readonly matches?: readonly object[];
  readonly policies?: object;
  readonly backends?: readonly object[];
}

/** A configuration with one free port and these routes. `more` adds other sections. */
export function routesConfig(routes: readonly RouteParts[], more: object = {}): string {
  return JSON.stringify({ gateways: { default: { port: 0, routes } }, ...more });
}

/** A gateway whose only route has these policies and leads to a plain HTTP service. */
export function proxyGateway(
  host: string,
  policies: object = {},
  more: object = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  return gateway(routesConfig([{ name: 'proxied', policies, backends: [{ host }] }], more), options);
}

/** A gateway that answers 200 `reached` itself after these policies. */
export function answeringGateway(
  policies: object,
  more: object = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const route = { policies: { directResponse: { body: 'reached' }, ...policies } };
  return gateway(routesConfig([route], more), options);
}
