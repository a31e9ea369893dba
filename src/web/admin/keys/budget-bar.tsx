import type { ReactNode } from 'react';
import type { ShownBudget } from '../../../core/virtual-key.ts';
import { count, time } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';

/** `1,000,000 tokens/month` for `1000000tokens/month`; a limit in another form is unchanged. */
const limitText = (limit: string): string =>
  limit.replace(
    /^([\d.,_]+)\s*(?=[a-z])/i,
    (_, value: string) => `${count(Number.parseFloat(value.replaceAll(/[,_]/g, '')))} `,
  );

/** How much of a budget is used: by calls that have ended, and by open ones. */
export function BudgetBar({ budget, of }: { readonly budget: ShownBudget; readonly of: string }): ReactNode {
  const { limit, spent, reserved, resetsAt } = budget;
  const max = Number.parseFloat(limit.replaceAll(/[,_]/g, ''));
  const used = Number(spent) + Number(reserved);
  const isUsedUp = used >= max;
  const unit = /USD/i.test(limit) ? 'USD' : 'tokens';
  return (
    <div className="budget">
      <meter min={0} max={max} value={used} high={max * 0.8} aria-label={`${limit} of ${of}: share used`} />{' '}
      <span className={isUsedUp ? 'bad' : ''}>
        {isUsedUp ? '✗ ' : ''}
        {count(Number(spent))} {unit}
      </span>{' '}
      <span className="quiet">
        of {visible(limitText(limit))}
        {Number(reserved) === 0 ? '' : `, ${count(Number(reserved))} reserved by open calls`}
        {resetsAt === undefined ? null : (
          <>
            , <span className="whole">resets on {time(resetsAt).replace(/:00$/, '')}</span>
          </>
        )}
      </span>
    </div>
  );
}
