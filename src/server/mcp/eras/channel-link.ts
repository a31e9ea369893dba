import type { ChannelEvents } from '../connection/target.ts';
import { idOfInvalid, requestNumber } from '../protocol/message.ts';

/**
 * Passes what happens on a channel to a receiver, which changes while protocol revisions are negotiated. If the receiver throws,
 * the request that the message answers fails, and nothing else: channels call it from event handlers, where an exception
 * would end the process.
 */
export class ChannelLink {
  receiver: ChannelEvents;
  isClosed = false;
  readonly #report: (error: unknown) => void;

  /** `report` logs an exception of the receiver. */
  constructor(receiver: ChannelEvents, report: (error: unknown) => void) {
    this.receiver = receiver;
    this.#report = report;
  }

  readonly events: ChannelEvents = {
    message: (text, inReplyTo) =>
      this.#contain(
        () => this.receiver.message(text, inReplyTo),
        () => inReplyTo ?? requestNumber(idOfInvalid(text)),
      ),
    invalid: (text, problem, id) =>
      this.#contain(
        () => this.receiver.invalid(text, problem, id),
        () => id,
      ),
    failed: (id, error) => this.#contain(() => this.receiver.failed(id, error)),
    awaits: (id) => this.receiver.awaits(id),
    onlyRequest: () => this.receiver.onlyRequest?.(),
    streaming: (id) => this.#contain(() => this.receiver.streaming?.(id)),
    suspended: (id) => this.#contain(() => this.receiver.suspended(id)),
    sessionLost: () => this.#contain(() => this.receiver.sessionLost()),
    closed: (error) => {
      this.isClosed = true;
      this.#contain(() => this.receiver.closed(error));
    },
  };

  /** `idOf`: the request that fails with it. */
  #contain(pass: () => void, idOf?: () => number | undefined): void {
    try {
      pass();
    } catch (error) {
      this.#report(error);
      const id = idOf?.();
      if (id !== undefined)
        this.events.failed(id, new Error("the gateway cannot handle the server's answer"));
    }
  }
}
