import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { LIMITS } from '../../../core/limits.ts';

/**
 * The host name that a client asks for at the beginning of a TLS connection (SNI, RFC 6066 §3). What it has sent is put
 * back, so that the connection can be passed on or its TLS ended. Resolves to undefined if it names none, and rejects if
 * it does not begin with TLS, sends more than `LIMITS.clientHelloBytes`, leaves, or takes longer than `timeout` ms.
 *
 * OpenSSL parses it: a handshake is begun with a copy of the bytes, and ends as soon as the server side has an opinion.
 */
export function readServerName(socket: Socket, timeout: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const copy = new Duplex({
      read: () => undefined,
      // A server that answers has read the whole message, which names no host.
      write: () => done(undefined),
    });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TLS reads and writes any stream.
    const handshake = new TLSSocket(copy as Socket, {
      isServer: true,
      SNICallback: (name, answer) => {
        done(undefined, name);
        answer(STOP);
      },
    });
    const fail = (error: Error): void => done(error);
    const leave = (): void => done(new Error('the client has left'));
    const timer = setTimeout(() => done(new Error('the client has not sent its hello in time')), timeout);
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > LIMITS.clientHelloBytes) done(new Error('the hello of the client is too large'));
      else copy.push(chunk);
    };
    let isDone = false;
    const done = (error: Error | undefined, name?: string): void => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      socket.off('data', onData).off('close', leave).pause();
      handshake.destroy();
      if (error !== undefined) {
        reject(error);
        return;
      }
      socket.unshift(Buffer.concat(chunks));
      resolve(name === '' ? undefined : name);
    };
    // Garbage, or the end that `SNICallback` has asked for.
    handshake.on('error', fail);
    handshake.on('_tlsError', fail);
    socket.on('data', onData).on('close', leave);
  });
}

const STOP = new Error('only the name is wanted');
