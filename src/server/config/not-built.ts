// Keys of agentgateway that this program does not have, with the reason that diagnostics and docs/compatibility.md give.

const CONTROL_PLANE = 'agctl has no control plane: it reads its configuration from one file';
const IDENTITIES = 'workload identities (SPIFFE) and meshes are not supported: use `tls` with `root`';

/** Policies of every place. */
export const OTHER_POLICIES = {
  backendTunnel: 'tunnels to backends are not supported: backends are connected to directly',
};

export const OTHER_BACKEND_POLICIES = {
  backendTunnel: OTHER_POLICIES.backendTunnel,
  health: 'plain backends are not evicted after failures: models are, with `health` of the model',
  sessionAffinity: 'a backend is one address, so there is nothing to stay with',
};

/** Keys of `config`. */
export const OTHER_PROCESS_SETTINGS = {
  enableIpv6: 'both IP versions are listened on: set `address` of a gateway for one of them',
  dns: 'names are looked up by the operating system: configure its resolver',
  localXdsPath: CONTROL_PLANE,
  xdsAddress: CONTROL_PLANE,
  xdsAuthToken: CONTROL_PLANE,
  namespace: CONTROL_PLANE,
  gateway: CONTROL_PLANE,
  serviceAccount: CONTROL_PLANE,
  clusterId: CONTROL_PLANE,
  network: CONTROL_PLANE,
  caAddress: IDENTITIES,
  caAuthToken: IDENTITIES,
  spiffe: IDENTITIES,
  trustDomain: IDENTITIES,
  additionalTrustDomains: IDENTITIES,
  skipValidateTrustDomain: IDENTITIES,
  hbone: 'HBONE tunnels are not supported',
  standardAttributes: 'not built: `frontendPolicies.accessLog` and `config.tracing` add and remove fields',
  customFunctions: 'expressions have no functions of their own: write the expression where it is used',
  connectionMinTerminationDeadline: 'a shutdown has no minimum time: it ends with the last request',
  backend: 'not built: connections to backends use fixed limits',
};
