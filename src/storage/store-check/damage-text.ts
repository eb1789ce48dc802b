// damage-text.ts: what a check found, as one sentence for a person.

import { plural } from '../../std/quantity.ts'
import type { FileDamage } from '../level-files/level-files.ts'

/** Damage that is named one by one; the rest is a number. */
const namedMax = 3

/** Files, units and offsets: the first ones, and how many there are in all. */
export function damageText(damage: readonly FileDamage[]): string {
  const named = damage.slice(0, namedMax).map(({ file, unit, offset, what }) => {
    return unit === 'block' || unit === 'log record' || unit === 'index' || unit === 'footer'
      ? `${file}, ${unit} at byte ${offset}: ${what}`
      : `${file}: ${what}`
  })
  const more = damage.length > namedMax ? `; and ${damage.length - namedMax} more` : ''
  return `${plural(damage.length, 'damaged place')}: ${named.join('; ')}${more}.`
}
