import type { AdminAddress } from './address.ts';
import { notAnAdmin } from './admin-client.ts';

/** The JSON object of an endpoint's answer. @throws CommandError if it is none: another server listens there */
export function answered<T extends object>(address: AdminAddress, body: Buffer, path: string): T {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value as T;
  } catch {
    // As below.
  }
  throw notAnAdmin(address.shown, `its ${path} is not a JSON object`);
}
