import { API_KEY } from '../../core/credentials.ts';
import { isPhoneNumber } from './phone-numbers.ts';

/** Replacement for matches of configured patterns (upstream). */
export const PATTERN_REPLACEMENT = '<masked>';

/** The first five have the names that upstream gives them; the others are additions. */
export const BUILTIN_NAMES = [
  'email',
  'ssn',
  'creditCard',
  'phoneNumber',
  'caSin',
  'iban',
  'apiKey',
] as const;
export type Builtin = (typeof BUILTIN_NAMES)[number];

export interface SensitiveData {
  /** RE2 pattern. */
  readonly pattern: string;
  /** A part of every match. Matches in linear time without RE2, and most texts have none: RE2JS takes 0.2 µs a character. */
  readonly hint: RegExp;
  /** What a match is replaced with (upstream). */
  readonly replacement: string;
  /** Further checks on a match. */
  isValid?(match: string): boolean;
  /** The match may have words after the data: if it is not valid, its beginnings up to a space or sign are tried. */
  readonly isGreedy?: boolean;
}

/**
 * Built-in patterns. No valid match is longer than `LIMITS.guardrailOverlap`, which streams hold back: e-mail addresses
 * have at most 254 characters (RFC 5321 §4.5.3.1.3), API keys about 200.
 */
export const BUILTINS: Readonly<Record<Builtin, SensitiveData>> = {
  email: {
    pattern: String.raw`\b[A-Za-z0-9._%+-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\.[A-Za-z]{2,24}\b`,
    hint: /@[A-Za-z0-9]/,
    replacement: '<EMAIL_ADDRESS>',
  },
  // U.S. Social Security: area 000, 666 and 900 to 999, group 00 and serial 0000 are never assigned.
  ssn: {
    pattern: String.raw`\b\d{3}(?:-\d{2}-|\.\d{2}\.| \d{2} |\d{2})\d{4}\b`,
    hint: /\d{3}[-. ]?\d{2}[-. ]?\d{4}/,
    replacement: '<SSN>',
    isValid: (match) => !/^(?:000|666|9)|^\d{3}00|0000$/.test(digitsOf(match)),
  },
  // Visa, Mastercard and Discover; American Express; Diners Club; as they are printed.
  creditCard: {
    pattern: String.raw`\b(?:(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6011|64[4-9]\d|65\d{2})[- ]?\d{4}[- ]?\d{4}[- ]?\d{4}|3[47]\d{2}[- ]?\d{6}[- ]?\d{5}|3(?:0[0-5]|[68]\d)\d[- ]?\d{6}[- ]?\d{4})\b`,
    hint: /\d{4}[- ]?\d{4,6}[- ]?\d{4}/,
    replacement: '<CREDIT_CARD>',
    isValid: hasLuhnDigit,
  },
  // E.164: at most 15 digits, in groups as they are written.
  phoneNumber: {
    pattern: String.raw`(?:\+\(?|\(\+?|\b)\d(?:[ .()/-]{0,3}\d){7,14}\b`,
    hint: /\d(?:[ .()/-]{0,3}\d){7}/,
    replacement: '<PHONE_NUMBER>',
    isValid: isPhoneNumber,
    isGreedy: true,
  },
  // Canadian Social Insurance: the last digit is a Luhn check digit; none starts with 0 or 8.
  caSin: {
    pattern: String.raw`\b\d{3}(?:[- ]\d{3}[- ]|\d{3})\d{3}\b`,
    hint: /\d{3}[- ]?\d{3}[- ]?\d{3}/,
    replacement: '<CA_SIN>',
    isValid: (match) => !/^[08]/.test(match) && hasLuhnDigit(match),
  },
  // ISO 13616: country, two check digits, 11 to 30 letters and digits; printed in groups of four.
  iban: {
    pattern: String.raw`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b`,
    hint: /[A-Z]{2}\d{2} ?[A-Z0-9]{4}/,
    replacement: '<IBAN>',
    isValid: hasIbanChecksum,
    isGreedy: true,
  },
  apiKey: {
    ...API_KEY,
    replacement: '<API_KEY>',
  },
};

/** ISO 7064 MOD 97-10: letters are numbers from 10, the first four characters come last, and the remainder is 1. */
function hasIbanChecksum(text: string): boolean {
  const compact = text.replaceAll(' ', '');
  if (compact.length < 15 || compact.length > 34) return false;
  let rest = 0;
  for (const sign of compact.slice(4) + compact.slice(0, 4)) {
    const value = Number.parseInt(sign, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

const digitsOf = (text: string): string => text.replace(/\D/g, '');

/** ISO/IEC 7812-1 Annex B: every second digit from the right counts twice, and the sum of all digits is a multiple of 10. */
function hasLuhnDigit(text: string): boolean {
  let sum = 0;
  for (const [index, digit] of [...digitsOf(text)].reverse().entries()) {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}
