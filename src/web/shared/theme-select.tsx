import type { ReactNode } from 'react';
import { chooseTheme, THEMES, type Theme, useTheme } from './theme.ts';

const NAMES: Readonly<Record<Theme, string>> = {
  system: 'System theme',
  light: 'Light theme',
  dark: 'Dark theme',
};

/** Light, dark, or what the system says. */
export function ThemeSelect(): ReactNode {
  const theme = useTheme();
  return (
    <select
      className="theme"
      aria-label="Theme"
      title="Theme"
      value={theme}
      onChange={({ target }) => chooseTheme(THEMES.find((each) => each === target.value) ?? 'system')}
    >
      {THEMES.map((each) => (
        <option key={each} value={each}>
          {NAMES[each]}
        </option>
      ))}
    </select>
  );
}
