import { createRequire } from 'node:module';
import type * as Package from 'libphonenumber-js';

/**
 * How national numbers are written, and the regions that write them so (upstream's list of regions): with a trunk prefix
 * `0`, after an area code of two digits, or in ten digits. Without this distinction, most record ids and dates would be
 * numbers of some region.
 */
const FORMS: readonly (readonly [form: RegExp, regions: readonly Package.CountryCode[]])[] = [
  [/^\(?0(?:\D{0,3}\d){8,11}$/, ['GB', 'DE', 'IL', 'IN', 'BR']],
  [/^\(?[1-9]\d[) .-]+(?:\D?\d){8,9}$/, ['BR']],
  [/^\(?(?:1\D{0,3})?[2-9](?:\D{0,3}\d){9}$/, ['US', 'CA', 'IN']],
];

let loaded: typeof Package | undefined;
/** Loaded at the first use: its data have 80 kB. */
function phoneNumbers(): typeof Package {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
  loaded ??= createRequire(import.meta.url)('libphonenumber-js') as typeof Package;
  return loaded;
}

/** Whether digits and separators are the number of a telephone: of any region if it starts with `+`. */
export function isPhoneNumber(text: string): boolean {
  const parse = phoneNumbers().parsePhoneNumberFromString;
  const trimmed = text.replace(/^\(\+/, '+');
  if (trimmed.startsWith('+')) return parse(trimmed)?.isValid() === true;
  return FORMS.some(
    ([form, regions]) => form.test(text) && regions.some((region) => parse(text, region)?.isValid() === true),
  );
}
