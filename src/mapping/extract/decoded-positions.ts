// decoded-positions.ts: the positions that a decoder found (positions/), as records of their own. Each is a
// copy of the object that holds the decoded one, so that all paths of the source are read in it as before:
//
//   { received_at, decoded_payload: { battery, history: [{ timestamp, latitude, longitude }, ..] } }
//   [ { received_at, decoded_payload: { timestamp, latitude, longitude }, fix: { latitude, .. } }, .. ]
//
// A stored position has its own part in the place of the decoded object: what is beside the list is of
// another time. A message with stored positions only has one more record, without `fix`, for what else it
// says.

import { compileSteps, isRecord, setOwn } from '../path/path-eval.ts'
import { parsePath, type Path } from '../path/path.ts'
import { Malformed } from '../path/text-cursor.ts'
import { findPositions, isNoFix, type FoundPosition } from '../positions/positions.ts'

type FindRecords = (record: unknown) => readonly Record<string, unknown>[] | undefined

/** The key of the position in each record. */
const fixKey = 'fix'

/** Throws Malformed. */
export function compileDecodedPositions(from: string | readonly string[]): FindRecords {
  const places = [from].flat().map((text) => holderOf(parsePath(text)))
  return (record) => {
    for (const { holder: find, key } of places) {
      const holder = find(record)
      const positions = isRecord(holder) ? findPositions(holder[key]) : undefined
      if (isRecord(holder) && positions) return recordsOf(holder, key, positions)
    }
    return undefined
  }
}

/** The path of the object that holds the value, and the key of the value. */
export function holderOf({ from, steps }: Path): { holder: (record: unknown) => unknown; key: string } {
  const last = steps.at(-1)
  if (from === 'up' || last?.kind !== 'key') throw new Malformed('must end in a key')
  return { holder: compileSteps(steps.slice(0, -1)), key: last.key }
}

function recordsOf(
  holder: Record<string, unknown>,
  key: string,
  positions: readonly FoundPosition[],
): Record<string, unknown>[] {
  const records = positions.map((position) => {
    const record = { ...holder }
    if (position.part !== null) setOwn(record, key, position.part)
    record[fixKey] = fixOf(position)
    return record
  })
  return positions[0]?.isStored === true ? [holder, ...records] : records
}

function fixOf(position: FoundPosition): Record<string, unknown> {
  const { latitude, longitude, time, ageMs } = position
  return {
    latitude,
    longitude,
    time: Number.isNaN(time) ? null : time,
    ageMs: Number.isNaN(ageMs) ? null : ageMs,
    valid: !isNoFix(position),
  }
}
