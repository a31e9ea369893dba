// The gateway's own servers (admin, metrics, readiness) with their defaults, on free ports, because several gateways
// run at once.
export const OWN_PORTS = {
  adminAddr: '127.0.0.1:0',
  statsAddr: '127.0.0.1:0',
  readinessAddr: '127.0.0.1:0',
};
