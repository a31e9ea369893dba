import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server';

interface StoredEvent {
  id: string;
  stream: string;
  message: JSONRPCMessage;
}

/** Keeps what was sent on the streams of one session, so that a client can resume with `Last-Event-ID`. */
export function eventLog(): EventStore {
  const events: StoredEvent[] = [];
  return {
    async storeEvent(stream, message) {
      const id = String(events.length);
      events.push({ id, stream, message });
      return id;
    },
    async replayEventsAfter(lastId, { send }) {
      const last = events[Number(lastId)];
      if (last === undefined) throw new Error(`no event ${lastId}`);
      for (const event of events.slice(Number(lastId) + 1)) {
        // A priming event is stored as an empty message; there is nothing in it to send again.
        if (event.stream === last.stream && 'jsonrpc' in event.message) await send(event.id, event.message);
      }
      return last.stream;
    },
  };
}
