import type { ChannelEvents } from '../target.ts';

/** Passes what happens on a channel to a receiver, which changes while protocol revisions are negotiated. */
export class ChannelLink {
  receiver: ChannelEvents;
  isClosed = false;

  constructor(receiver: ChannelEvents) {
    this.receiver = receiver;
  }

  readonly events: ChannelEvents = {
    message: (text, inReplyTo) => this.receiver.message(text, inReplyTo),
    invalid: (text, problem, id) => this.receiver.invalid(text, problem, id),
    failed: (id, error) => this.receiver.failed(id, error),
    awaits: (id) => this.receiver.awaits(id),
    onlyRequest: () => this.receiver.onlyRequest?.(),
    streaming: (id) => this.receiver.streaming?.(id),
    suspended: (id) => this.receiver.suspended(id),
    sessionLost: () => this.receiver.sessionLost(),
    closed: (error) => {
      this.isClosed = true;
      this.receiver.closed(error);
    },
  };
}
