/** Fields that proxies and services of sign-in add, and the beginnings of their names. */
const FIELDS =
  /^(?:forwarded|via|x-real-ip|true-client-ip|remote-user|x-remote-user|x-forwarded-.+|x-auth-request-.+|x-authenticated-.+|x-original-.+|cf-.+|x-amzn-.+|x-goog-.+|x-ms-client-.+|tailscale-.+)$/i;

/** Whether a field says that a proxy has sent the request: it does not come from this machine, even if its connection does. */
export function isOfProxy(name: string): boolean {
  return FIELDS.test(name);
}
