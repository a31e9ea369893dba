import { visible } from '../../shared/visible.ts';

/** A message or description for the editor, which is not drawn by React: what is between backticks is code. */
export function withCode(text: string): HTMLElement {
  const element = document.createElement('span');
  for (const [index, part] of visible(text)
    .split(/`([^`]*)`/)
    .entries()) {
    if (index % 2 === 0) element.append(part);
    else {
      const code = document.createElement('code');
      code.textContent = part;
      element.append(code);
    }
  }
  return element;
}
