// watched-fields.ts: the fields of a source as bits, for what a record has and what of it is sent.
//
//   alone    position, signal OBD_LIFETIME_ODOMETER: a payload may have it and no other
//   part     speed, heading, gps.altitude, trip.id: goes with a position or a signal, and is not sent without
//   beside   the time, a signal that reads previous values: every record has it, and none gives it later
//
// Bound: 31 fields have a bit of their own; those beyond share the last one, and are not watched.

import { hash } from 'node:crypto'
import type { SourceConfig } from '../config.ts'
import { fieldNear, plainKey } from '../fields/field-names.ts'
import { NoResult } from '../path/value.ts'
import { isRecord } from '../path/path-eval.ts'
import { compilePaths, type Read } from '../path/path.ts'
import { pathsReadBy, readsPrevious } from '../path/paths-used.ts'
import { findUnread, type SourceReads } from '../path/unread-keys.ts'
import type { Place } from '../types.ts'

export const position = 'position'

/** `config`: its options. */
export type FieldName = { name: string; role: 'alone' | 'part' | 'beside'; config: unknown }

export type WatchedFields = {
  /** Of the source, as texts: where its messages come from, and what their devices are called. */
  readonly topics: string
  readonly device: string
  /** By bit: `1 << index`. */
  readonly names: readonly string[]
  /** The same: each changes with the options of its field, and with those that decide what a record is. */
  readonly fingerprints: readonly string[]
  /** The same: the smallest gap. The first record has no previous value. */
  readonly gapsMin: readonly number[]
  /** Fields that depend on the family of the device. */
  readonly familyBits: number
  /** Fields that each record which was read would have. */
  readonly ownBits: number
  /** Of fields that can be made later of the message alone: none of a source that collects values. */
  readonly keptBits: number
  /** Fields that a record which was read would have. Without a position, nothing that goes with it counts. */
  judgedBits(present: number): number
  /** The bits of these names. */
  bitsOf(names: readonly string[]): number
  /** The names of these bits. */
  namesOf(bits: number): string[]
  /** The keys of the record at hand that nothing reads. */
  unread(place: Place): readonly string[]
  /** Of `keys`, the one that may be the field of the bit `1 << index` under another name; null for none. */
  keyNear(index: number, keys: readonly string[]): string | null
  /** A path of it that finds a value of another kind in the record at hand; null for none. */
  changedPath(index: number, place: Place): string | null
}

/** Gives each field its bit while a source is compiled. */
export type FieldBits = {
  of(field: FieldName): number
  watched(source: SourceConfig, reads: () => SourceReads): WatchedFields
}

const watchedMax = 31
const sharedBit = 1 << watchedMax
/** Values of a message that are looked at for keys that nothing reads, and keys that are found. */
const limits = { visitsMax: 500, keysMax: 64 }

export function createFieldBits(): FieldBits {
  const names: string[] = []
  const configs: unknown[][] = []
  let ownBits = sharedBit
  let besideBits = 0
  return { of, watched }

  function of({ name, role, config }: FieldName): number {
    const known = names.indexOf(name)
    if (known === -1 && names.length >= watchedMax) return sharedBit
    const index = known === -1 ? names.push(name) - 1 : known
    ;(configs[index] ??= []).push(config)
    if (role !== 'part') ownBits |= 1 << index
    if (role === 'beside') besideBits |= 1 << index
    return 1 << index
  }

  function watched(source: SourceConfig, reads: () => SourceReads): WatchedFields {
    const kin = names.map((name, index) => kinOf(name, configs[index]!))
    return {
      topics: JSON.stringify([source.topic].flat()),
      device: JSON.stringify(source.device ?? null),
      names,
      fingerprints: names.map((name, index) => fingerprintOf(name, configs[index]!, source)),
      familyBits: configs.reduce((sum, own, at) => (isOfFamilies(own) ? sum | (1 << at) : sum), 0),
      gapsMin: configs.map((own) => (readsPrevious(own) ? 2 : 1)),
      ownBits,
      keptBits: source.coalesce === undefined ? ownBits & ~besideBits : 0,
      judgedBits: (present) => (names[0] === position && (present & 1) === 0 ? ownBits : ~0),
      bitsOf(some) {
        return some.reduce((bits, name) => bits | bitOf(names.indexOf(name)), 0)
      },
      namesOf(bits) {
        const own = names.filter((_name, index) => (bits & (1 << index)) !== 0)
        return (bits & sharedBit) === 0 ? own : [...own, 'others']
      },
      unread: (place) => findUnread(reads().record, place.root, [place], limits).keys,
      keyNear: (index, keys) => keys.find((key) => isNear(kin[index]!, key)) ?? null,
      changedPath: (index, place) =>
        kin[index]!.paths.find(({ read }) => isOfOtherKind(read(place)))?.text ?? null,
    }
  }
}

/** Options that decide what is read, and not what is made of it. */
function fingerprintOf(name: string, configs: readonly unknown[], source: SourceConfig): string {
  const { each, extract, encoding, compression, charset, coalesce, keys } = source
  const { fix, no_fix: noFix, remember, families, model } = source
  const more = name === position ? { fix, noFix, remember } : isOfFamilies(configs) ? { families, model } : {}
  const shared = {
    each: each === '$' ? undefined : each,
    extract,
    encoding,
    compression,
    charset,
    coalesce,
    keys,
  }
  const text = JSON.stringify([shared, more, configs], (key, value: unknown) =>
    beside.has(key) ? undefined : value,
  )
  return hash('sha256', text, 'hex').slice(0, 16)
}

const beside: ReadonlySet<string> = new Set(['absent', 'quantity', 'default', 'value_unit', 'type'])

function isOfFamilies(configs: readonly unknown[]): boolean {
  return configs.some((config) => isRecord(config) && 'families' in config)
}

/** What a key is compared with: the usual names of the field, and the last keys of its own paths. */
type Kin = {
  usual: readonly string[]
  own: readonly string[]
  paths: readonly { text: string; read: Read }[]
}

function kinOf(name: string, configs: readonly unknown[]): Kin {
  const usual = usualNames[name] ?? [name]
  const own = pathsReadBy(configs).flatMap(({ path }) => {
    const last = path.steps.at(-1)
    return last?.kind === 'key' ? [plainKey(last.key)] : []
  })
  const isNumber = name === position || name.startsWith('signal ')
  const texts = isNumber ? pathTextsIn(configs) : []
  return { usual, own, paths: texts.map((text) => ({ text, read: compilePaths(text) })) }
}

/** By the titles of fields/field-names.ts. */
const usualNames: Readonly<Record<string, readonly string[]>> = {
  [position]: ['latitude', 'longitude'],
  'signal OBD_LIFETIME_ODOMETER': ['odometer'],
  'signal OBD_TOTAL_ENGINE_TIME': ['engine hours'],
}

function pathTextsIn(config: unknown): string[] {
  if (Array.isArray(config)) return config.flatMap(pathTextsIn)
  if (!isRecord(config) || config['expr'] !== undefined || config['values'] !== undefined) return []
  return [config['path']].flat().filter((path) => typeof path === 'string')
}

/** Shorter keys are contained in too many others. */
const containedMin = 3

function isNear({ usual, own }: Kin, key: string): boolean {
  const last = key.slice(key.lastIndexOf('.') + 1).replace('[]', '')
  const title = fieldNear(last)
  if (title !== undefined && usual.includes(title)) return true
  const plain = plainKey(last)
  return own.some((one) => contains(plain, one) || contains(one, plain))
}

function contains(whole: string, part: string): boolean {
  return part.length >= containedMin && whole.includes(part)
}

/** A text without digits, such as "n/a", says that there is no value. */
function isOfOtherKind(value: unknown): boolean {
  if (typeof value === 'string') return /\d/.test(value) && Number.isNaN(Number(value))
  return typeof value === 'object' && value !== null && !(value instanceof NoResult)
}

/** A field that the source had when the record was sent may be in the config no more. */
function bitOf(index: number): number {
  return index === -1 ? sharedBit : 1 << index
}
