import { ACTIONS, PHASES, tooLongToCheck } from '../../guardrails/outcome.ts';
import { compilePatterns, maskCrossings, patternFields } from '../../guardrails/patterns.ts';
import { edit } from '../../kernel/json/json-text.ts';
import { errorTexts, type MessageText, requestTexts, responseTexts } from './message-texts.ts';
import { defineProcessor, type MessageVerdict, REJECTED } from './processor.ts';

const TEXTS = { params: requestTexts, result: responseTexts, error: errorTexts };

/** Masks or rejects texts that match patterns. Keys, numbers and URIs are only read by `reject`. */
export const regex = defineProcessor({
  kind: 'regex',
  fields: patternFields,
  compile(config, context) {
    const patterns = compilePatterns(config, context);
    const { guardedCharacters } = context.settings.limits;
    const counted = context.settings.counter('guardrails');
    return {
      place: context.place(),
      check({ phase, part, text: json }): MessageVerdict {
        if (json.length > guardedCharacters) {
          counted([PHASES[phase], 'Reject']);
          throw tooLongToCheck(`the ${phase}`, guardedCharacters);
        }
        const texts = TEXTS[part](json);
        const verdict = patterns.action === 'reject' ? rejection(texts) : masked(json, texts);
        counted([PHASES[phase], ACTIONS[verdict.kind]]);
        return verdict;
      },
      close: () => Promise.resolve(),
    };

    function rejection(texts: readonly MessageText[]): MessageVerdict {
      const blocks = texts.filter(({ isBlock }) => isBlock === true).map(({ value }) => value);
      const rule = firstRule(texts) ?? patterns.crossings(blocks)[0]?.rule;
      if (rule === undefined) return { kind: 'pass' };
      return { kind: 'reject', code: REJECTED.denied, reason: `it matches ${rule}` };
    }

    function firstRule(texts: readonly MessageText[]): string | undefined {
      for (const { value } of texts) {
        const rule = patterns.match(value);
        if (rule !== undefined) return rule;
      }
      return undefined;
    }

    function masked(json: string, texts: readonly MessageText[]): MessageVerdict {
      const values = texts.map(({ value, isFixed }) => (isFixed ? value : patterns.mask(value)));
      const blocks = [...texts.keys()].filter((index) => texts[index]?.isBlock === true);
      const contents = blocks.map((index) => values[index] ?? '');
      for (const [place, content] of maskCrossings(contents, patterns.crossings(contents)).entries())
        values[blocks[place] ?? 0] = content;
      const edits = texts.flatMap(({ start, end, value, encode }, index) => {
        const text = values[index] ?? '';
        if (text === value) return [];
        return [{ start, end, text: JSON.stringify(encode === undefined ? text : encode(text)) }];
      });
      return edits.length === 0 ? { kind: 'pass' } : { kind: 'mask', text: edit(json, edits) };
    }
  },
});
