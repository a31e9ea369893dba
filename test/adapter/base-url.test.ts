import { describe, expect, test } from 'vitest';
import { memoryApiUrl } from '../../src/adapter/base-url.ts';
import { verifies } from '../kit/verifies.ts';

describe('MEMORY_API_URL', () => {
  verifies(
    ['memory.config.url', 'memory.config.base-url'],
    'MEMORY_API_URL has a default and ends in /api/memory',
    () => {
      expect(memoryApiUrl().href).toBe('http://memory-api:3006/api/memory');
    },
  );

  test.each([
    ['http://host:3006', 'http://host:3006/api/memory'],
    ['http://host:3006/', 'http://host:3006/api/memory'],
    ['http://host:3006/api/memory', 'http://host:3006/api/memory'],
    ['http://host:3006/api/memory///', 'http://host:3006/api/memory'],
    ['https://host/tenant', 'https://host/tenant/api/memory'],
    ['https://host/tenant/api/memory/', 'https://host/tenant/api/memory'],
    ['http://host/notapi/memory', 'http://host/notapi/memory/api/memory'],
    ['  http://[::1]:3006  ', 'http://[::1]:3006/api/memory'],
  ])('MEMORY_API_URL %s is read as %s', (given, expected) => {
    expect(memoryApiUrl(given).href).toBe(expected);
  });

  test.each([
    ['', 'MEMORY_API_URL is empty'],
    ['memory-api:3006', 'must begin with http:// or https://'],
    ['memory-api', 'is not a URL'],
    ['ftp://host', 'must begin with http:// or https://'],
    ['http://host?x=1', 'must not have a query or fragment'],
    ['http://host#', 'must not have a query or fragment'],
    ['http://u:secret@host', 'must not contain a name or password'],
  ])('MEMORY_API_URL %j is rejected: %s', (given, message) => {
    expect(() => memoryApiUrl(given)).toThrow(message);
    expect(() => memoryApiUrl(given)).not.toThrow('secret');
  });
});
