/**
 * The gateway, as upstream names it in dumps, logs, metrics and expressions whenever there is no Kubernetes resource
 * behind it. What the configuration calls a gateway is the name of the listener there.
 */
export const GATEWAY = { namespace: 'default', name: 'default', label: 'default/default' } as const;
