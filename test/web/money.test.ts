import { expect, test } from 'vitest';
import { dollarAxis } from '../../src/web/admin/model/money.ts';

test.each([
  [
    [0, 0.05, 0.1],
    ['$0.00', '$0.05', '$0.10'],
  ],
  [
    [0, 0.5, 1],
    ['$0.00', '$0.50', '$1.00'],
  ],
  [
    [0, 0.25, 0.5],
    ['$0.00', '$0.25', '$0.50'],
  ],
  [
    [0, 0.000002, 0.000004],
    ['$0.000000', '$0.000002', '$0.000004'],
  ],
  [
    [0, 10, 20],
    ['$0', '$10', '$20'],
  ],
])('the dollars of the axis %j have as many digits as their distance needs', (values, shown) => {
  expect(dollarAxis(values)).toEqual(shown);
});
