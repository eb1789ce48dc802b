// level-order.ts: in which levels tables belong, where no manifest says it.
//
// LevelDB takes the first version of a key that it finds from level 0 downwards, and of level 0 from the
// table with the largest number. So a table with a newer version of a key must be above each table with an
// older one. The greatest sequences of the tables do not show that: an old table can be rewritten late. Only
// the keys that tables share do. Below level 0 the tables of a level must not overlap.
//
//   layers    from the oldest: a table goes to the lowest layer above all tables that hold older versions of
//             its keys, in which it overlaps no other one. Layer 0 is level 6, layer 5 is level 1
//   level 0   what needs more layers, oldest first
//   merged    where level 0 would get more than a few tables, or two tables each hold a newer version of a
// key
//             of the other (which no database does): these tables are written anew as level 1

import { sequenceOf, userKeyOf } from '../level-files/table-reader/block.ts'
import { levels } from '../level-files/manifest.ts'
import { versionsIn, type BoundedTable } from './table-versions.ts'

export type LevelOrder = {
  /** By the index of the table: its level, or that it is merged. */
  levels: readonly (number | 'merged')[]
  /** Indexes of the tables at level 0, oldest first. */
  top: readonly number[]
  /** Bytes of keys and values of the tables to merge. */
  mergedBytes: number
  lastSequence: number
}

/** LevelDB slows writes down from 8 tables at level 0 on. Logs and additions become tables there, too. */
const topMax = 3
const overlappingMax = levels - 1
/** Above all tables that are not merged. */
export const mergedLevel = 1

export async function orderTables(
  path: string,
  tables: readonly BoundedTable[],
  signal: AbortSignal,
): Promise<LevelOrder> {
  const below = tables.map(() => new Set<number>())
  const bytes = tables.map(() => 0)
  let lastSequence = 0
  for await (const { versions } of versionsIn(path, tables, signal)) {
    for (const { key, value, from } of versions) {
      bytes[from] = bytes[from]! + key.length + value.length
      lastSequence = Math.max(lastSequence, sequenceOf(key))
    }
    if (versions.length > 1) addOrder(versions, below)
  }
  const layers = layersOf(tables, below)
  const tooHigh = layers.flatMap((layer, index) => (layer === null || layer >= overlappingMax ? [index] : []))
  const isMerged = layers.includes(null) || tooHigh.length > topMax
  // One level less: the merged tables become level 1.
  const highest = isMerged ? overlappingMax - 1 : overlappingMax
  const isAbove = (layer: number | null) => layer === null || layer >= highest
  const merged = isMerged ? layers.flatMap((layer, index) => (isAbove(layer) ? [index] : [])) : []
  const top = isMerged ? [] : tooHigh.toSorted((one, other) => (layers[one] ?? 0) - (layers[other] ?? 0))
  return {
    levels: layers.map((layer) => {
      if (layer === null || layer >= highest) return isMerged ? 'merged' : 0
      return levels - 1 - layer
    }),
    top,
    mergedBytes: merged.reduce((sum, index) => sum + bytes[index]!, 0),
    lastSequence,
  }
}

/** Tables with versions of one key, newest first: each is above those with the next older version. */
function addOrder(versions: readonly { key: Buffer; from: number }[], below: Set<number>[]): void {
  let newer: number[] = []
  let same: number[] = []
  let sequence = -1
  for (const { key, from } of versions) {
    if (sequenceOf(key) !== sequence) {
      newer = same
      same = []
      sequence = sequenceOf(key)
    }
    same.push(from)
    for (const table of newer) if (table !== from) below[table]!.add(from)
  }
}

/** The layer of each table; null in a circle and above one. */
function layersOf(tables: readonly BoundedTable[], below: readonly Set<number>[]): (number | null)[] {
  const layers: (number | null)[] = tables.map(() => null)
  const placed: number[][] = []
  const left = below.map((set) => set.size)
  const above = tables.map((): number[] => [])
  for (const [index, set] of below.entries()) for (const older of set) above[older]!.push(index)
  const ready = left.flatMap((count, index) => (count === 0 ? [index] : []))
  for (let index = ready.shift(); index !== undefined; index = ready.shift()) {
    let layer = 0
    for (const older of below[index]!) layer = Math.max(layer, (layers[older] ?? 0) + 1)
    while ((placed[layer] ?? []).some((other) => overlap(tables[index]!, tables[other]!))) layer += 1
    layers[index] = layer
    const inLayer = placed[layer] ?? []
    placed[layer] = inLayer
    inLayer.push(index)
    for (const newer of above[index]!) {
      left[newer] = left[newer]! - 1
      if (left[newer] === 0) ready.push(newer)
    }
  }
  return layers
}

/** By user keys: LevelDB counts tables that share a user key as overlapping. */
export function overlap(
  one: Pick<BoundedTable, 'firstKey' | 'lastKey'>,
  other: Pick<BoundedTable, 'firstKey' | 'lastKey'>,
): boolean {
  return (
    userKeyOf(one.firstKey).compare(userKeyOf(other.lastKey)) <= 0 &&
    userKeyOf(other.firstKey).compare(userKeyOf(one.lastKey)) <= 0
  )
}
