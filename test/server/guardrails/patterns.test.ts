import { describe, expect, test } from 'vitest';
import { compilePatterns } from '../../../src/server/guardrails/patterns.ts';
import type { Builtin } from '../../../src/server/guardrails/sensitive-data.ts';
import type { CompileContext } from '../../../src/server/kernel/compile-context.ts';

// Only an invalid pattern uses the context.
const context = { at: () => context } as unknown as CompileContext;
const masking = (...rules: ({ builtin: Builtin } | { pattern: string })[]) =>
  compilePatterns({ action: 'mask', rules: rules.map((rule) => ({ ...rule })) as never }, context);

// RPBLC-hq/DAM#9, RPBLC-hq/DAM#12, api7/aisix#767
describe('texts in letters that only look different', () => {
  test.each([
    ['a space without width', 'alice@\u200bexample.com'],
    ['soft hyphens', 'al\u00adice@exam\u00adple.com'],
    ['joiners', 'ali\u2060ce@example\u200d.com'],
    ['signs of direction', 'alice\u202e@example.com'],
    ['tags', 'alice@example\u{e0020}.com'],
    ['selectors of variants', 'alice\ufe0f@example.com'],
    ['an at sign of full width', 'alice\uff20example.com'],
    ['letters of full width', 'ａｌｉｃｅ＠ｅｘａｍｐｌｅ．ｃｏｍ'],
    ['letters of Cyrillic', 'аlicе@ехаmple.соm'],
    ['letters of Greek', 'αlice@exαmρle.cοm'],
    ['letters of Cyrillic beside a space without width', 'а\u200blice@example.com'],
    ['letters of mathematics', '𝐚𝐥𝐢𝐜𝐞@𝗲𝘅𝗮𝗺𝗽𝗹𝗲.𝕔𝕠𝕞'],
  ])('an address with %s is masked, and what is around it stays', (_, address) => {
    const around = '\u{1f468}\u200d\u{1f469} 𝐚：';
    expect(masking({ builtin: 'email' }).mask(`${around} ${address}, ${around}`)).toBe(
      `${around} <EMAIL_ADDRESS>, ${around}`,
    );
    const own = compilePatterns(
      { action: 'reject', rules: [{ pattern: '^alice@example[.]com$' }] as never },
      context,
    );
    expect([own.match(address), own.match(`${address}m`)]).toEqual(['rules[0]', undefined]);
    const half = Math.floor(address.length / 2);
    expect(own.crossings([address.slice(0, half), address.slice(half)])).toHaveLength(1);
  });

  test('a pattern for such characters still matches', () => {
    expect(masking({ pattern: '\\x{200B}' }).mask('a\u200bb')).toBe('a<masked>b');
    expect(masking({ pattern: 'аlice' }).mask('аlice')).toBe('<masked>');
  });

  test.each([
    ['DE[0-9]{20}', 'ᎠЕ89370400440532013000'],
    ['a123456789b', 'а123456789b'],
    ['x_paypal_2', 'x_раураӏ_2'],
    ['cop', 'соρ'],
  ])('%s matches %s, which has letters of several alphabets', (pattern, text) => {
    expect(masking({ pattern }).mask(`сор ${text}, сор`)).toBe('сор <masked>, сор');
  });

  test('words of one alphabet stay, and those of several in which other letters differ', () => {
    const text = 'Сор, рост и хор в доме 5а; ΤΟ ΝΕΟ; e-mailы, PDFка, IT-отдел; σ = 0,5 µm';
    expect(masking({ pattern: '(?i)cop|poct|xop|5a|to|neo|ka|ot|o =' }).mask(text)).toBe(text);
    const ownAlphabet = masking({ pattern: 'хор|ΝΕΟ' });
    expect(ownAlphabet.mask(text)).toBe(text.replace('хор', '<masked>').replace('ΝΕΟ', '<masked>'));
    expect(masking({ builtin: 'apiKey' }).mask('ключ АКІАIOSFODNN7EXAMPLA.')).toBe('ключ <API_KEY>.');
  });
});

describe('builtin patterns', () => {
  test.each<[Builtin, string, string]>([
    ['email', 'to ann.b+c@mail.example.com, bye', 'to <EMAIL_ADDRESS>, bye'],
    ['email', 'mailto:ann@example.com.', 'mailto:<EMAIL_ADDRESS>.'],
    ['email', 'ann@localhost and @ann and a@b', 'ann@localhost and @ann and a@b'],
    ['ssn', '123-45-6789 123.45.6789 123 45 6789 123456789', '<SSN> <SSN> <SSN> <SSN>'],
    [
      'ssn',
      '000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000',
      '000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000',
    ],
    ['ssn', '1234567890 12-345-6789', '1234567890 12-345-6789'],
    ['creditCard', '4111111111111111', '<CREDIT_CARD>'],
    [
      'creditCard',
      '5555-5555-5555-4444, 3782 822463 10005, 30569309025904',
      '<CREDIT_CARD>, <CREDIT_CARD>, <CREDIT_CARD>',
    ],
    ['creditCard', '6011 1111 1111 1117', '<CREDIT_CARD>'],
    ['creditCard', '4111111111111112 is no number of a card', '4111111111111112 is no number of a card'],
    [
      'creditCard',
      '4111\u00a01111\u202f1111\u20091111, 4111\u20111111\u20111111\u20111111, a\u00a0b',
      '<CREDIT_CARD>, <CREDIT_CARD>, a\u00a0b',
    ],
    ['ssn', '123\u201145\u20116789', '<SSN>'],
    ['phoneNumber', '415\u2011555\u20112671 or +49\u00a030\u00a01234567', '<PHONE_NUMBER> or <PHONE_NUMBER>'],
    ['iban', 'DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000', '<IBAN>'],
    ['phoneNumber', 'call +49 30 1234567 or +1 (415) 555-2671', 'call <PHONE_NUMBER> or <PHONE_NUMBER>'],
    [
      'phoneNumber',
      '(415) 555-2671, 415-555-2671, 1-415-555-2671',
      '<PHONE_NUMBER>, <PHONE_NUMBER>, <PHONE_NUMBER>',
    ],
    [
      'phoneNumber',
      '192.168.100.200 on 2026-01-31 at 12:30, 1.5',
      '192.168.100.200 on 2026-01-31 at 12:30, 1.5',
    ],
    [
      'phoneNumber',
      '4155552671, 030 1234567, 020 7946 0958',
      '<PHONE_NUMBER>, <PHONE_NUMBER>, <PHONE_NUMBER>',
    ],
    ['phoneNumber', 'take 2 415-555-2671 5', 'take 2 <PHONE_NUMBER> 5'],
    ['phoneNumber', '(11) 91234-5678 or 03-123-4567', '<PHONE_NUMBER> or <PHONE_NUMBER>'],
    [
      'phoneNumber',
      'order 20260131, record 1790000000, 4111 1111 1111 1111, 123-45-6789',
      'order 20260131, record 1790000000, 4111 1111 1111 1111, 123-45-6789',
    ],
    ['iban', 'DE89 3704 0044 0532 0130 00 or GB29NWBK60161331926819', '<IBAN> or <IBAN>'],
    ['iban', 'BE68 5390 0754 7034 THEN, XX BE68539007547034', '<IBAN> THEN, XX <IBAN>'],
    ['iban', 'DE88 3704 0044 0532 0130 00', 'DE88 3704 0044 0532 0130 00'],
    ['apiKey', `sk-proj-${'aB3_'.repeat(30)} and ghp_${'a1'.repeat(18)}.`, '<API_KEY> and <API_KEY>.'],
    [
      'apiKey',
      'AKIAIOSFODNN7EXAMPLE; task-list-of-the-whole-project-team',
      '<API_KEY>; task-list-of-the-whole-project-team',
    ],
    ['caSin', '046 454 286 130-692-544', '046 454 286 <CA_SIN>'],
    ['caSin', '130692544 and 130692545', '<CA_SIN> and 130692545'],
  ])('%s changes %j to %j', (builtin, text, expected) => {
    expect(masking({ builtin }).mask(text)).toBe(expected);
  });
});

describe('patterns', () => {
  test('overlapping matches are replaced together, by the name of the first', () => {
    const patterns = masking({ pattern: 'ab' }, { builtin: 'email' }, { pattern: 'com more' });
    expect(patterns.mask('ab@example.com more')).toBe('<EMAIL_ADDRESS>');
    expect(patterns.mask('ab ab')).toBe('<masked> <masked>');
  });

  test('empty matches are ignored', () => {
    const patterns = masking({ pattern: 'x*' });
    expect(patterns.mask('axxb')).toBe('a<masked>b');
    expect(patterns.match('ab')).toBeUndefined();
  });

  test('match names the rule', () => {
    const patterns = masking({ builtin: 'ssn' }, { pattern: 'secret' });
    expect(patterns.match('a secret')).toBe('rules[1]');
    expect(patterns.match('123-45-6789')).toBe('ssn');
    expect(patterns.match('nothing')).toBeUndefined();
  });

  test('text outside of ASCII keeps its offsets', () => {
    expect(masking({ builtin: 'email' }).mask('😀 ann@example.com ü')).toBe('😀 <EMAIL_ADDRESS> ü');
  });
});
