import { Slot, type SlotHolder } from '../slot.ts';
import type { HeaderList } from './header-list.ts';

/**
 * Names of the gateway's own cookies, also with the prefixes of RFC 6265bis §4.1.3. Browsers send a cookie to all routes of
 * a host, whatever backend is behind them: whoever receives such a cookie can use it in the name of its user.
 */
const OWN = /^(?:__(?:Host|Secure)-)?agctl_/i;

/** Whether a cookie with this name is never passed on. */
export const isOwnCookie = (name: string): boolean => OWN.test(name);

/** The gateway's own cookies of a request, `name=value` each. Undefined if it has none. */
export const ownCookies = new Slot<readonly string[]>();

/**
 * Moves the gateway's own cookies from the headers of a request to its slot, before anything else reads the headers. All
 * other cookies stay byte for byte as sent.
 */
export function takeOwnCookies(holder: SlotHolder, { raw }: HeaderList): void {
  const own: string[] = [];
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const value = raw[at + 1] ?? '';
    if (!/agctl_/i.test(value) || (raw[at] ?? '').toLowerCase() !== 'cookie') continue;
    const pairs = value.split(';');
    const kept = pairs.filter((pair) => !isOwnCookie(pair.trimStart()));
    if (kept.length === pairs.length) continue;
    own.unshift(...pairs.map((pair) => pair.trim()).filter(isOwnCookie));
    const rest = kept.join(';').trimStart();
    if (rest === '') raw.splice(at, 2);
    else raw[at + 1] = rest;
  }
  if (own.length > 0) ownCookies.set(holder, own);
}

/** Removes cookies that a backend sets with the gateway's own names: it could sign users in as somebody else. */
export function removeOwnSetCookies({ raw }: HeaderList): void {
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const name = raw[at] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'set-cookie') continue;
    if (isOwnCookie((raw[at + 1] ?? '').trimStart())) raw.splice(at, 2);
  }
}
