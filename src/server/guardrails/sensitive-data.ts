/** Replacement for matches of configured patterns (upstream). */
export const PATTERN_REPLACEMENT = '<masked>';

export type Builtin = 'ssn' | 'creditCard' | 'phoneNumber' | 'email' | 'caSin';

interface SensitiveData {
  /** RE2 pattern. */
  readonly pattern: string;
  /** A part of every match. Matches in linear time without RE2, and most texts have none: RE2JS takes 0.2 µs a character. */
  readonly hint: RegExp;
  /** What a match is replaced with (upstream). */
  readonly replacement: string;
  /** Further checks on a match. */
  isValid?(match: string): boolean;
}

/** Built-in patterns, by the names that upstream gives them. */
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
  // International numbers with `+` (E.164: at most 15 digits), and North American ones with separators.
  phoneNumber: {
    pattern: String.raw`\+\d{1,3}(?:[ .-]?\(?\d{1,4}\)?){2,5}\b|(?:\b1[ .-])?(?:\(\d{3}\) ?|\b\d{3}[ .-])\d{3}[ .-]\d{4}\b`,
    hint: /\+\d|\d{3}[ .-]\d{4}/,
    replacement: '<PHONE_NUMBER>',
    isValid: (match) => {
      const { length } = digitsOf(match);
      return length >= 8 && length <= 15;
    },
  },
  // Canadian Social Insurance: the last digit is a Luhn check digit; none starts with 0 or 8.
  caSin: {
    pattern: String.raw`\b\d{3}(?:[- ]\d{3}[- ]|\d{3})\d{3}\b`,
    hint: /\d{3}[- ]?\d{3}[- ]?\d{3}/,
    replacement: '<CA_SIN>',
    isValid: (match) => !/^[08]/.test(match) && hasLuhnDigit(match),
  },
};

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
