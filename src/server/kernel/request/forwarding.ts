/** Fields that proxies add: such a request does not come from this machine, even if its connection does. */
export const FORWARDING = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'] as const;
