import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../../../src/core/limits.ts';
import { StdoutMessages } from '../../../../../src/server/mcp/targets/stdio/stdout-messages.ts';

// Every shape check of the reader of lines, which calls of servers that are started for each would take minutes to reach.

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Calls {
  /** The calls that wait for their responses. */
  readonly waiting?: readonly number[];
  /** Whether the reader can ask for the only call. */
  readonly knowsOnly?: boolean;
}

/** A reader, and what it says: the text of a message, or why a text is none and which call fails. */
function reader({ waiting = [7], knowsOnly = true }: Calls = {}) {
  const said: string[] = [];
  const calls = new Set(waiting);
  const messages = new StdoutMessages({
    message: (text) => void said.push(text),
    invalid: (_text, problem, id) => void said.push(id === undefined ? problem : `${problem}, fails ${id}`),
    failed: (id, error) => void said.push(`failed ${id}: ${error.message}`),
    awaits: (id) => calls.has(id),
    ...(knowsOnly && { onlyRequest: () => (calls.size === 1 ? [...calls][0] : undefined) }),
  });
  const line = (text: string | Buffer) => messages.line(Buffer.from(text));
  return { said, calls, line, end: () => messages.end() };
}

/** What is said about lines, and after them. */
function read(lines: readonly (string | Buffer)[], calls?: Calls): string[] {
  const { said, line } = reader(calls);
  for (const each of lines) line(each);
  vi.runAllTimers();
  return said;
}

const ANSWER = '{"jsonrpc":"2.0","id":7,"result":{}}';
const NOT_JSON = 'the line is not JSON';
const INCOMPLETE = 'the message is incomplete';
const LATIN_1 = Buffer.from(ANSWER.replace('{}', '{"a":"é"}'), 'latin1');

describe('lines of stdout', () => {
  test.each<[what: string, lines: (string | Buffer)[], said: string[]]>([
    ['a message', [ANSWER], [ANSWER]],
    ['white space around a message', [`\t${ANSWER} \r`], [ANSWER]],
    ['nothing', ['', '  ', '\r'], []],
    ['two messages', [ANSWER + ANSWER], [ANSWER, ANSWER]],
    ['"}{" in a string', ['{"a":"}{\\"b"}'], ['{"a":"}{\\"b"}']],
    ['two objects, of which one is incomplete', ['{"a":{"b":1}{"c":2}'], ['{"a":{"b":1}{"c":2}']],
    ['two objects and a text between them', ['{"a":{}}x{"b":"}{"}'], ['{"a":{}}x{"b":"}{"}']],
    ['an object, a list and an object', ['{"a":1}["}{"]{"b":1}'], ['{"a":1}["}{"]{"b":1}']],
    ['an escaped quote before braces', ['{"a":"\\"}{"}{"b":1}'], ['{"a":"\\"}{"}', '{"b":1}']],
    ['an object on two lines', ['{', '"a":1}'], ['{ "a":1}']],
    ['a list on two lines', ['[', '{"a":1},{"b":2}]'], ['{"a":1}', '{"b":2}']],
    ['a list of one line', ['[{"a":1}]'], ['{"a":1}']],
    ['a list with a number', ['[{"a":1},2]'], ['[{"a":1},2]']],
    ['a list of nothing on two lines', ['[', ']'], ['[ ]']],
    ['a list that is no JSON', ['[{"a":1},]'], ['[{"a":1},]']],
    ['an object with a line break in a string', ['{"a":"b', 'c"}'], ['{"a":"b\nc"}']],
    ['NUL characters alone around a message', [`\0\0${ANSWER}\0`], [ANSWER]],
    ['NUL characters alone', ['\0\0'], []],
    ['colours in a message', ['{"a":\u001b[33m1\u001b[0m}'], ['{"a":1}']],
    // modelcontextprotocol/csharp-sdk#791: `dotnet run` writes the cursor, a title and the progress to a pipe, too.
    ...[
      '\u001b[?25l',
      '\u001b[2K\r',
      '\u001b[1F',
      '\u001b[?1h\u001b=',
      '\u001b(B',
      '\u001b]0;dotnet\u0007',
      '\u001b]9;4;3;\u001b\\',
    ].map((sequence): [string, string[], string[]] => [
      `${JSON.stringify(sequence)} around a message`,
      [sequence + ANSWER + sequence],
      [ANSWER],
    ]),
    ['an object of JavaScript on one line', ['{ port: 1 }'], ['{ port: 1 }']],
    ['a text', ['Server started'], [NOT_JSON]],
    ['a text that ends like an object', ['started {"port":1}'], [NOT_JSON]],
    ['a text that begins like a list', ['[INFO] started'], [NOT_JSON]],
    ['an object of JavaScript', ['{ port: 1'], [NOT_JSON]],
    ['a text that is not UTF-8', [Buffer.from('é', 'latin1')], ['the line is not UTF-8']],
    ['half a message', ['{"a":1,'], [INCOMPLETE]],
    ['half a message, then a message', ['{"a":1,', ANSWER], [INCOMPLETE, ANSWER]],
    ['half a message, then an object of it', ['{"a":', '{"b":1}', '}'], ['{"a": {"b":1} }']],
    ['half a message, then no JSON', ['{"a":', '{"jsonrpc":}', '}'], ['{"a":\n{"jsonrpc":}\n}']],
    ['half a message, then an indented one', ['{"a":[', ` ${ANSWER}`, ']}'], [`{"a":[ ${ANSWER} ]}`]],
    ['a bracket too many', ['{"a":1}]', ANSWER], ['{"a":1}]', ANSWER]],
  ])('with %s', (_what, lines, said) => {
    expect(read(lines)).toEqual(said);
  });

  test('a message that has begun is incomplete when the output ends, and nothing else is', () => {
    const { said, line, end } = reader();
    end();
    line('{"a":1,');
    end();
    end();
    expect(said).toEqual([INCOMPLETE]);
    vi.runAllTimers();
    expect(said).toEqual([INCOMPLETE]);
  });

  test('a message on several lines has time after each of them', () => {
    const { said, line } = reader();
    for (const text of ['{', '"a":[', ']']) {
      line(text);
      vi.advanceTimersByTime(LIMITS.unfinishedMessageWait - 1);
    }
    line('}');
    expect(said).toEqual(['{ "a":[ ] }']);
  });

  test('a message on several lines may have as many bytes as one on a line, and the next is read again', () => {
    const half = 'x'.repeat(LIMITS.targetMessageBytes / 2);
    const { said, line } = reader({ waiting: [] });
    line('{"a":"');
    line(half);
    expect(said).toEqual([]);
    line(half);
    expect(said).toEqual(['the message is too long']);
    line('{');
    line('}');
    expect(said.at(-1)).toBe('{ }');
    const head = '{"a":"';
    line(head);
    line('x'.repeat(LIMITS.targetMessageBytes - head.length - 2));
    line('"}');
    expect(said.at(-1)).toHaveLength(LIMITS.targetMessageBytes + 2);
    vi.runAllTimers();
    expect(said).toHaveLength(3);
  });
});

describe('a response that cannot be read', () => {
  test.each<[what: string, line: string | Buffer, problem: string]>([
    ['bytes that are not UTF-8', LATIN_1, 'the line is not UTF-8'],
    ['UTF-16', Buffer.from(ANSWER, 'utf16le'), 'the line has NUL characters, as in UTF-16'],
    ['half of it', '{"jsonrpc":"2.0","id":7,"result":', INCOMPLETE],
    ['an id of another type', '{"jsonrpc":"2.0","id":"7","result":', INCOMPLETE],
    ['text without letters before it', `> ${ANSWER}`, NOT_JSON],
  ])('with %s fails its call and no other', (_what, line, problem) => {
    expect(read([line])).toEqual([`${problem}, fails 7`]);
    expect(read([line], { waiting: [6, 7] })).toEqual([`${problem}, fails 7`]);
    expect(read([line], { waiting: [6] })).toEqual([problem]);
    expect(read([line], { knowsOnly: false })).toEqual([`${problem}, fails 7`]);
  });

  test.each<[what: string, line: string, problem: string]>([
    ['no id', '{"jsonrpc":"2.0","result":', INCOMPLETE],
    ['an id that is no number', '{"jsonrpc":"2.0","id":null,"result":', INCOMPLETE],
    ['headers of another protocol', 'Content-Length: 52', 'Content-Length headers are those of LSP'],
  ])('with %s fails the only call', (_what, line, problem) => {
    expect(read([line])).toEqual([`${problem}, fails 7`]);
    expect(read([line], { waiting: [6, 7] })).toEqual([problem]);
    expect(read([line], { waiting: [] })).toEqual([problem]);
    expect(read([line], { knowsOnly: false })).toEqual([problem]);
  });

  test.each<[what: string, line: string, problem: string]>([
    ['a request', '{"jsonrpc":"2.0","id":7,"method":"ping",', INCOMPLETE],
    ['no message', '{"id":7,"result":', INCOMPLETE],
    ['a message without a brace', '"jsonrpc":"2.0","id":7', NOT_JSON],
    ['a header among other words', 'Content-Length: 52 bytes', NOT_JSON],
  ])('is none if it is %s', (_what, line, problem) => {
    expect(read([line])).toEqual([problem]);
  });

  test('after other text on its line fails its call unless the response follows', () => {
    const { said, calls, line } = reader();
    line(`sending ${ANSWER}`);
    expect(said).toEqual([NOT_JSON]);
    vi.advanceTimersByTime(LIMITS.loggedAnswerWait);
    expect(said.slice(1)).toEqual([
      "failed 7: the server's answer cannot be used: there is other text on its line",
    ]);
    line(`sending ${ANSWER}`);
    calls.delete(7);
    vi.runAllTimers();
    expect(said.slice(2)).toEqual([NOT_JSON]);
  });
});
