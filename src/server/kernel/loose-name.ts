import { foldedName } from '../../core/json-members.ts';

/** White space, control and format characters, and others that are not shown, such as variation selectors. */
const UNSEEN = /[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Visible ASCII, of which only the case is ignored. */
const PLAIN = /^[!-~]*$/;

/** What remains of a name for a server that ignores case, white space, and differences that NFKC removes. */
export function looseName(name: string): string {
  if (PLAIN.test(name)) return name.toLowerCase();
  const plain = name.replace(UNSEEN, '').normalize('NFKC');
  return foldedName(plain).normalize('NFKC').replace(UNSEEN, '');
}
