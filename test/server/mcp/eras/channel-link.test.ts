import { describe, expect, test } from 'vitest';
import type { ChannelEvents } from '../../../../src/server/mcp/connection/target.ts';
import { ChannelLink } from '../../../../src/server/mcp/eras/channel-link.ts';

/** A receiver that throws for each event with this name, and keeps what failed. */
function linked(broken: keyof ChannelEvents | 'all') {
  const failed: [number, string][] = [];
  const reported: unknown[] = [];
  const bug = new Error('a bug');
  const throwing = (name: keyof ChannelEvents) => (): void => {
    if (broken === 'all' || broken === name) throw bug;
  };
  const link = new ChannelLink(
    {
      message: throwing('message'),
      invalid: throwing('invalid'),
      failed: (id, error) => {
        throwing('failed')();
        failed.push([id, error.message]);
      },
      awaits: () => false,
      streaming: throwing('streaming'),
      suspended: throwing('suspended'),
      sessionLost: throwing('sessionLost'),
      closed: throwing('closed'),
    },
    (error) => reported.push(error),
  );
  return { events: link.events, failed, reported, bug };
}

const REASON = "the gateway cannot handle the server's answer";
const RESPONSE = '{"jsonrpc":"2.0","id":7,"result":{}}';

describe('an exception while a message of an MCP server is handled', () => {
  test('fails the request that the message answers, as its transport or its id says', () => {
    const { events, failed, reported, bug } = linked('message');
    events.message(RESPONSE, 3);
    events.message(RESPONSE);
    events.message('{"jsonrpc":"2.0","id":"8","error":{}}');
    expect(failed).toEqual([
      [3, REASON],
      [7, REASON],
      [8, REASON],
    ]);
    expect(reported).toEqual([bug, bug, bug]);
  });

  test('fails no request if the message is a request or notification of the server', () => {
    const { events, failed, reported } = linked('message');
    events.message('{"jsonrpc":"2.0","id":7,"method":"roots/list"}');
    events.message('{"jsonrpc":"2.0","method":"notifications/message"}');
    events.message('not JSON');
    expect(failed).toEqual([]);
    expect(reported).toHaveLength(3);
  });

  test('fails the request of a message that cannot be used', () => {
    const { events, failed } = linked('invalid');
    events.invalid('x', 'no JSON', 5);
    expect(failed).toEqual([[5, REASON]]);
  });

  test('is reported for every event of a channel, and never thrown into the channel', () => {
    const { events, reported } = linked('all');
    events.message(RESPONSE);
    events.invalid('x', 'no JSON', undefined);
    events.failed(1, new Error('gone'));
    events.streaming?.(1);
    events.suspended(1);
    events.sessionLost();
    events.closed(new Error('closed'));
    // The response fails its request as well, which throws again.
    expect(reported).toHaveLength(8);
  });
});
