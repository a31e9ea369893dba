import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Slot } from '../slot.ts';
import type { HeaderList } from './header-list.ts';

/** A client's WebSocket handshake (RFC 6455 §4.1). */
export interface Handshake {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client has sent after its request. */
  readonly head: Buffer;
}

/** The handshake of a request, if it is one. */
export const handshake = new Slot<Handshake>();

/** The body of a reply with status 101: it takes over the client's connection. Exactly one of its methods is called. */
export interface Takeover {
  /** Answers the handshake, with these headers besides those of the protocol, and owns the socket from then on. */
  takeOver(handshake: Handshake, headers: HeaderList): void;
  /** Called if the client has disconnected already. */
  discard(): void;
}
