// usual-conditions.ts: the conditions of a source that must hold for a usual message: `when`, and
// `fix.valid`. The compiled conditions read a record that has only the values that they read; it is filled
// again for each message.

import { pathsReadBy } from '../path/paths-used.ts'
import type { Condition } from '../path/condition.ts'
import type { Path } from '../path/path.ts'
import type { Holder, UsualCondition } from './fast-plan.ts'
import { absent, isFalse, isNull, isTrue, text } from './found-values.ts'
import type { MessageValues } from './message-values.ts'
import { NotUsual, type WantedKeys } from './wanted-keys.ts'

/** Throws NotUsual for a path with other steps than keys. */
export function usualCondition(written: string, holds: Condition, keys: WantedKeys): UsualCondition {
  const record: Holder = {}
  const reads = pathsReadBy({ when: written }).map(({ path }) => ({
    slot: keys.slotOf(path),
    ...placeIn(record, path),
  }))
  return { holds, record, reads }
}

/** A value that is read and has values inside of it that are read, too, is not usual. */
function placeIn(record: Holder, { steps }: Path): { holder: Holder; key: string } {
  let holder = record
  for (const [index, step] of steps.entries()) {
    if (step.kind !== 'key' || step.key === '__proto__') break
    const { key } = step
    const isLast = index === steps.length - 1
    const known = Object.hasOwn(holder, key)
    if (isLast && known && holder[key] !== undefined) break
    if (isLast) {
      holder[key] = undefined
      return { holder, key }
    }
    if (known && holder[key] === undefined) break
    if (!known) holder[key] = {}
    holder = holder[key] as Holder
  }
  throw new NotUsual()
}

/** Null where a value is not usual. */
export function holdsFor(
  { holds, record, reads }: UsualCondition,
  values: MessageValues,
  bytes: Buffer,
  captures: readonly string[],
): boolean | null {
  const { kinds, starts, ends } = values
  for (let index = 0; index < reads.length; index += 1) {
    const { slot, holder, key } = reads[index]!
    switch (kinds[slot]!) {
      case absent:
      case isNull:
        holder[key] = undefined
        break
      case text:
        holder[key] = bytes.toString('latin1', starts[slot], ends[slot])
        break
      case isTrue:
      case isFalse:
        holder[key] = kinds[slot] === isTrue
        break
      default: {
        const value = values.numberIn(slot)
        if (Number.isNaN(value)) return null
        holder[key] = value
      }
    }
  }
  return holds(record, record, captures)
}
