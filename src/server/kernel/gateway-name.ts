/**
 * Name of the gateway in dumps, logs, metrics and expressions, as upstream sets it without a Kubernetes resource. The name
 * of a gateway in the configuration appears there as the name of the listener.
 */
export const GATEWAY = { namespace: 'default', name: 'default', label: 'default/default' } as const;
