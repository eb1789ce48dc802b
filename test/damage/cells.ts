// cells.ts: the table of damage: which file is damaged how and where. Places come from a seed.

import { assertNever } from '../../src/std/assert.ts'
import { createRandom } from '../support/random.ts'
import type { DamageBase } from './damage-base.ts'
import type { FileLayout } from './file-layout.ts'

export type FileKind = 'table' | 'log' | 'MANIFEST' | 'CURRENT' | 'mark' | 'records'

export type Damage =
  | { kind: 'missing' }
  /** Everything from `offset` on is gone. */
  | { kind: 'truncated'; offset: number }
  /** 4 KiB of zeros, from a multiple of 4 KiB. */
  | { kind: 'zeroed page'; offset: number }
  | { kind: 'flipped bit'; offset: number; bit: number; part: string }

export type Cell = { id: number; fileKind: FileKind; file: string; damage: Damage }

const pageBytes = 4096

export type CellOptions = { seed: number; places: number }

/** All cells of a base. `places` is the number of seeded places for each kind of damage that has any. */
export function allCells(base: DamageBase, { seed, places }: CellOptions): Cell[] {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random.next() * Math.max(1, limit))
  const cells: Omit<Cell, 'id'>[] = []
  for (const { fileKind, file, bytes, layout } of base.files) {
    const add = (damage: Damage) => cells.push({ fileKind, file, damage })
    const isSmall = bytes < 64
    // The losable files get fewer places: what is damaged in them must only never matter.
    const share = fileKind === 'records' ? Math.ceil(places / 4) : isSmall ? Math.ceil(places / 2) : places
    add({ kind: 'missing' })
    for (const part of [0.1, 0.5, 0.95]) add({ kind: 'truncated', offset: Math.floor(bytes * part) })
    const pages = Math.ceil(bytes / pageBytes)
    for (const page of distinct(Math.min(share, pages), pages, below))
      add({ kind: 'zeroed page', offset: page * pageBytes })
    for (const [part, from, until] of partsOf(layout, bytes))
      for (let place = 0; place < share; place += 1)
        add({ kind: 'flipped bit', offset: from + below(until - from), bit: below(8), part })
  }
  return cells.map((cell, id) => ({ id, ...cell }))
}

function distinct(count: number, limit: number, below: (limit: number) => number): number[] {
  const found = new Set<number>()
  while (found.size < count) found.add(below(limit))
  return [...found]
}

/** Parts of a file in which bits are flipped: name, first byte, end. */
function partsOf(layout: FileLayout, bytes: number): [part: string, from: number, until: number][] {
  if (layout.kind === 'table') {
    const { indexOffset, footerOffset } = layout
    return [
      ['header', 0, 16],
      ['data', 16, indexOffset],
      ['index', indexOffset, footerOffset],
      ['footer', footerOffset, bytes],
    ]
  }
  if (bytes < 64) return [['data', 0, bytes]]
  // Of a log: checksum, length and type of the first record.
  return [
    ['header', 0, 7],
    ['data', 7, bytes],
  ]
}

/** Some of the cells, spread over kinds of files and damage; the same for the same seed. */
export function sampleOf(cells: readonly Cell[], count: number, seed: number): Cell[] {
  const random = createRandom(seed)
  const groups = new Map<string, Cell[]>()
  for (const cell of cells) {
    const { fileKind, damage } = cell
    const key = `${fileKind} ${damage.kind} ${damage.kind === 'flipped bit' ? damage.part : ''}`
    groups.set(key, [...(groups.get(key) ?? []), cell])
  }
  const chosen: Cell[] = []
  while (chosen.length < Math.min(count, cells.length))
    for (const group of groups.values()) {
      if (chosen.length >= count || group.length === 0) continue
      chosen.push(...group.splice(Math.floor(random.next() * group.length), 1))
    }
  return chosen
}

export function textOf({ id, file, damage }: Cell): string {
  switch (damage.kind) {
    case 'missing':
      return `${id} ${file} missing`
    case 'flipped bit':
      return `${id} ${file} bit ${damage.bit} of byte ${damage.offset} (${damage.part}) flipped`
    case 'truncated':
    case 'zeroed page':
      return `${id} ${file} ${damage.kind} at ${damage.offset}`
    default:
      return assertNever(damage)
  }
}
