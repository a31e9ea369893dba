import { LIMITS } from '../../../core/limits.ts';
import { Untranslatable } from './chat-format.ts';

/** Bounds what the translation of one stream keeps: `LIMITS.responseBodyBytes` characters. */
export class HeldText {
  #length = 0;

  /** Throws `Untranslatable` beyond the bound. */
  add(text: string): string {
    this.#length += text.length;
    if (this.#length > LIMITS.responseBodyBytes) throw new Untranslatable('the response', 'it is too long');
    return text;
  }

  remove(text: string): void {
    this.#length -= text.length;
  }
}
