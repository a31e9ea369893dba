import { describe, expect, test } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { InvalidDirectives, LogDirectives, parseDirectives } from '../../src/core/log-directives.ts';

describe('LogDirectives', () => {
  test.each([
    ['info', 'info'],
    ['WARN', 'warn'],
    ['info,mcp=debug', 'mcp=debug,info'],
    ['mcp:debug', 'mcp=debug'],
    ['agentgateway::proxy:Debug,error', 'agentgateway::proxy=debug,error'],
    ['proxy::gateway=trace', 'proxy::gateway=trace'],
    ['a=0,bb=1,ccc=2,dddd=3,eeeee=4,ffffff=5', 'ffffff=trace,eeeee=debug,dddd=info,ccc=warn,bb=error,a=off'],
    ['mcp=', 'mcp=error'],
    [' info , mcp = debug'.replace(' = ', '='), 'mcp=debug,info'],
    ['info,warn', 'warn'],
    ['mcp=info,mcp=debug', 'mcp=debug'],
    ['b=info,a=info', 'a=info,b=info'],
  ])('LogDirectives parses %s as %s', (text, current) => {
    expect(new LogDirectives(text).current).toBe(current);
  });

  test.each([
    '',
    'loud',
    'mcp',
    'a::b',
    'info,',
    'mcp=loud',
    'mcp=6',
    '=info',
    'a b=info',
    'a[span]=info',
    'a=info=x',
  ])("parseDirectives rejects %j with the admin API's message", (text) => {
    expect(() => parseDirectives(text)).toThrow(new InvalidDirectives(text, text).message);
  });

  test('LogDirectives are unchanged by rejected directives, whose error suggests corrections', () => {
    const directives = new LogDirectives('info,mcp=debug');
    const refused = (() => {
      try {
        directives.add('error,mcp=debg,tace');
      } catch (error) {
        return error as InvalidDirectives;
      }
      return undefined;
    })();
    expect(refused).toMatchObject({
      message: 'Invalid level provided: error,mcp=debg,tace',
      clause: 'mcp=debg',
    });
    expect(directives.current).toBe('mcp=debug,info');
    expect(new InvalidDirectives('tace', 'tace').hint).toBe('did you mean `trace`?');
  });

  test('LogDirectives.add merges directives and reset restores the initial ones', () => {
    const directives = new LogDirectives('info,rmcp=warn');
    directives.add('proxy::gateway=trace,debug');
    expect(directives.current).toBe('proxy::gateway=trace,rmcp=warn,debug');
    directives.add('agentgateway::proxy::gateway=off');
    expect(directives.current).toBe('agentgateway::proxy::gateway=off,rmcp=warn,debug');
    directives.reset();
    expect(directives.current).toBe('rmcp=warn,info');
  });

  test.each([
    ['warn,mcp=debug', 'mcp::stdio', 'debug', true],
    ['warn,mcp=debug', 'proxy::gateway', 'info', false],
    ['warn,agentgateway::mcp=debug', 'mcp::stdio', 'debug', true],
    ['warn,agctl::mcp=debug', 'mcp', 'debug', true],
    ['warn,mcp=debug', 'agentgateway::mcp', 'debug', true],
    ['warn,agentgateway=debug', 'proxy', 'debug', true],
    ['agentgateway=warn,mcp=debug', 'mcp', 'debug', true],
    ['debug,mcp=warn,mcp::stdio=info', 'mcp::stdio', 'info', true],
    ['debug,mcp=warn,mcp::stdio=info', 'mcp::http', 'info', false],
    ['info,request=off', 'request', 'error', false],
    ['mcp=trace', 'proxy', 'error', false],
    ['off', 'proxy', 'error', false],
  ] as const)('LogDirectives(%s).allows: %s at %s is %s', (text, scope, level, allowed) => {
    expect(new LogDirectives(text).allows(scope, level)).toBe(allowed);
  });

  test('LogDirectives change the log level of a running log', () => {
    const lines: string[] = [];
    const log = createLog(
      { write: (line) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() },
      'info',
      'json',
    );
    log.debug('mcp', 'one');
    log.directives.add('mcp=debug');
    log.debug('mcp', 'two');
    log.debug('proxy', 'three');
    log.directives.reset();
    log.debug('mcp', 'four');
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(['two']);
  });
});
