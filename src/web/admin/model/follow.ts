import { followRequests } from './requests.ts';

/**
 * A page that nobody looks at lets go of its stream after this long, in ms: browsers open six connections to a server
 * at most, over all tabs. What it missed comes back with the stream, as far as the gateway has kept it.
 */
const HIDDEN_FOR = 30_000;

/** Follows the requests of the gateway for as long as the application is open, and somebody looks at it. */
export function followRequestsWhileSeen(): void {
  let stream: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    stream?.abort();
    stream = undefined;
  };
  const look = (): void => {
    clearTimeout(timer);
    if (document.visibilityState === 'hidden') {
      timer = setTimeout(stop, HIDDEN_FOR);
    } else if (stream === undefined) {
      stream = new AbortController();
      followRequests(stream.signal);
    }
  };
  look();
  document.addEventListener('visibilitychange', look);
}
