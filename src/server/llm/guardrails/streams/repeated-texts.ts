import { LIMITS } from '../../../../core/limits.ts';
import { uncheckable } from '../guarded-text.ts';

/**
 * The texts of a stream whose later events repeat them. A repetition is recognized by its text, because it is the whole
 * text of a channel, and is replaced by what was sent of that channel.
 */
export class RepeatedTexts {
  readonly #texts = new Map<string, { whole: string; sent: string }>();
  #size = 0;

  /**
   * Adds text to a channel as it was received. Throws an `AppError` (503) beyond `LIMITS.streamFrameBytes`: the last
   * event, which repeats all texts, could not be received either.
   */
  add(channel: string, text: string): void {
    this.#size += text.length;
    if (this.#size > LIMITS.streamFrameBytes)
      throw uncheckable('response', 'the texts of the stream are too long');
    const known = this.#texts.get(channel);
    if (known === undefined) this.#texts.set(channel, { whole: text, sent: '' });
    else known.whole += text;
  }

  /** Adds text to a channel as it is sent. */
  send(channel: string, text: string): void {
    const known = this.#texts.get(channel);
    if (known !== undefined) known.sent += text;
  }

  /** The channel that has exactly this text. */
  channelOf(text: string): string | undefined {
    for (const [channel, { whole }] of this.#texts) if (whole === text) return channel;
    return undefined;
  }

  /** What was sent of a channel. */
  sent(channel: string): string | undefined {
    return this.#texts.get(channel)?.sent;
  }
}
