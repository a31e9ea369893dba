import { describe, expect, test } from 'vitest';
import { parseListenAddress } from '../../src/core/listen.ts';

describe('parseListenAddress', () => {
  test.each([
    ['off', { kind: 'off' }],
    ['OFF', { kind: 'off' }],
    ['127.0.0.1:15000', { kind: 'tcp', hosts: ['127.0.0.1'], port: 15000 }],
    ['localhost:0', { kind: 'tcp', hosts: ['127.0.0.1', '::1'], port: 0 }],
    ['[::1]:15000', { kind: 'tcp', hosts: ['::1'], port: 15000 }],
    [':15020', { kind: 'tcp', hosts: ['::', '0.0.0.0'], port: 15020 }],
    ['unix:/run/a.sock', { kind: 'unix', path: '/run/a.sock' }],
    ['unix:///run/a.sock', { kind: 'unix', path: '/run/a.sock' }],
  ])('parseListenAddress(%s)', (text, expected) => {
    expect(parseListenAddress(text)).toEqual(expected);
  });

  test.each([
    '',
    '15000',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:70000',
    '127.0.0.1:-1',
    '127.0.0.1:1 ',
    '::1:15000',
    '[127.0.0.1]:1',
    '[::1]',
    'example.com:15000',
    'http://127.0.0.1:1',
    'unix:relative.sock',
    `unix:/${'x'.repeat(104)}`,
  ])('parseListenAddress rejects %j', (text) => {
    expect(parseListenAddress(text)).toBeUndefined();
  });
});
