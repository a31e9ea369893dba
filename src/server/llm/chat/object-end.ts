/** Finds the end of a JSON object that arrives in pieces. What is not JSON has no end, or one somewhere. */
export class ObjectEnd {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** Whether the object is whole: what follows is another one. */
  isReached = false;

  /** Reads the next piece. */
  read(text: string): void {
    for (const character of text) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        if (character === '"') this.#isInText = false;
        else this.#isEscaped = character === '\\';
      } else if (character === '"') this.#isInText = true;
      else if (character === '{' || character === '[') this.#depth += 1;
      else if (character === '}' || character === ']') {
        this.#depth -= 1;
        this.isReached ||= this.#depth === 0;
      }
    }
  }
}
