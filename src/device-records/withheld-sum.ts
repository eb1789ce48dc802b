// withheld-sum.ts: adds what two mappings have withheld of one device.

import type { WithheldValue } from '../domain/payload.ts'

export function withheldSum(
  before: readonly WithheldValue[],
  since: readonly WithheldValue[],
): readonly WithheldValue[] {
  if (before.length === 0) return since
  const sum = since.map((value) => ({ ...value }))
  for (const value of before) {
    const known = sum.find(
      ({ source, field, reason, isSent }) =>
        source === value.source &&
        field === value.field &&
        reason === value.reason &&
        isSent === value.isSent,
    )
    if (known === undefined) sum.push(value)
    else known.count += value.count
  }
  return sum
}
