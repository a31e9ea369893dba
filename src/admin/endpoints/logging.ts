import { durationSchema, durationText } from '../../core/duration.ts';
import { membersOf, stringIn } from '../../core/foreign.ts';
import { InvalidDirectives, LOG_LEVEL_HELP } from '../../core/log-directives.ts';
import { defineEndpoint, parameter, sendText, shows } from '../endpoint.ts';

/** Shows the log levels, and changes them on POST; `for=10m` reverts the change after that time. */
export const logging = defineEndpoint({
  path: '/logging',
  methods: { GET: shows('viewer'), POST: { role: 'operator', audit: 'log.level' } },
  handle(request, reply, { levels }, call) {
    const reset = parameter(request, 'reset') !== undefined;
    const level = last(request.query, 'level');
    const wants = level !== undefined && level !== '';
    if (!(wants || reset)) call.changesNothing();
    else {
      // A link or an image in a page can make a browser send GET.
      if (request.method === 'GET') return reply.code(405).header('allow', 'POST').send();
      const wait = last(request.query, 'for');
      const duration = wait === undefined ? undefined : durationSchema.safeParse(wait);
      if (duration?.success === false)
        return sendText(
          reply,
          400,
          `Invalid time provided: ${printable(wait ?? '')}: expected one such as 10m\n`,
        );
      const before = levels.current;
      try {
        levels.change(wants ? level : undefined, reset, duration?.data);
      } catch (error) {
        if (!(error instanceof InvalidDirectives)) throw error;
        return sendText(reply, 400, `${printable(error.message)}\n${LOG_LEVEL_HELP}`);
      }
      const time = duration === undefined ? '' : ` for ${durationText(duration.data)}`;
      call.changed({ detail: `from ${before} to ${levels.current}${time}` });
    }
    const { current, until, afterwards } = levels;
    const note = until === undefined ? '' : ` (until ${new Date(until).toISOString()}, then ${afterwards})`;
    return sendText(reply, 200, `current log level is ${current}${note}\n`);
  },
});

/** The last of several values counts, as in upstream. */
function last(query: unknown, name: string): string | undefined {
  return stringIn([membersOf(query)[name]].flat().at(-1));
}

/** Text from a client, shortened and on one line. */
function printable(text: string): string {
  return text.slice(0, 256).replace(/\p{C}/gu, '?');
}
