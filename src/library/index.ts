/** The gateway in a program of your own. */
export type {
  ConfigProblem,
  Gateway,
  GatewayEvents,
  GatewayOptions,
  LogMessage,
  RequestOrigin,
} from './api.ts';
export { ConfigError } from './config-error.ts';
export type { GatewayConfig } from './config-types.ts';
export { createGateway } from './create-gateway.ts';
export type { RequestFacts } from './request-facts.ts';
