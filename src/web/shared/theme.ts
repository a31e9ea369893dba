import { useSyncExternalStore } from 'react';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const SETTING = 'agctl-theme';
const listeners = new Set<() => void>();
const DARK = matchMedia('(prefers-color-scheme: dark)');
const FORCED = matchMedia('(forced-colors: active)');

/** The chosen theme, stored by the browser. */
function theme(): Theme {
  const stored = localStorage.getItem(SETTING);
  return THEMES.find((each) => each === stored) ?? 'system';
}

/** Displays the chosen theme: `theme.css` derives every colour from `color-scheme`, which this attribute sets. */
export function applyTheme(): void {
  const chosen = theme();
  if (chosen === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
}

export function chooseTheme(next: Theme): void {
  localStorage.setItem(SETTING, next);
  applyTheme();
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore(onThemeChange, theme);
}

/** Calls `listener` whenever colours change, by choice or by the system. Returns a function that ends this. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  for (const query of [DARK, FORCED]) query.addEventListener('change', listener);
  return () => {
    listeners.delete(listener);
    for (const query of [DARK, FORCED]) query.removeEventListener('change', listener);
  };
}

/**
 * Reads colours of the theme for a canvas, which knows no custom properties: `light-dark()` is resolved only in a
 * property that has a colour.
 */
export function colorReader(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  const isDark = style.colorScheme === 'dark' || (style.colorScheme !== 'light' && DARK.matches);
  return (name) => {
    const value = style.getPropertyValue(`--${name}`).trim();
    const [, light, dark] = /^light-dark\(([^,]+),([^)]+)\)$/.exec(value) ?? [];
    return light === undefined || dark === undefined ? value : (isDark ? dark : light).trim();
  };
}
