// watched-fields.ts: the fields of a source as bits, for what a record has and what of it is sent.
//
//   position, signal OBD_LIFETIME_ODOMETER   alone they are a payload
//   speed, heading, gps.altitude, trip.id    go with a position or a signal, and are not sent without one
//
// Bound: 31 fields have a bit of their own; those beyond share the last one, and are not watched.

import { hash } from 'node:crypto'
import type { SourceConfig } from '../config.ts'
import { fieldNear } from '../fields/field-names.ts'
import {
  compileFindUnread,
  compileFindUnreadCollected,
  type FindUnread,
  type UnreadKeys,
} from '../path/unread-keys.ts'
import type { RecordContext } from '../types.ts'

export const position = 'position'

/** `isAlone`: a payload may have this field and no other. `config`: its options. */
export type FieldName = { name: string; isAlone: boolean; config: unknown }

export type WatchedFields = {
  /** By bit: `1 << index`. */
  readonly names: readonly string[]
  /** The same: each changes with the options of its field, and with those that decide what a record is. */
  readonly fingerprints: readonly string[]
  readonly aloneBits: number
  /** Of fields that can be made later of the message alone: none of a source that collects values. */
  readonly keptBits: number
  /** Fields that a record which was read would have. Without a position, nothing that goes with it counts. */
  judgedBits(present: number): number
  /** The bits of these names. */
  bitsOf(names: readonly string[]): number
  /** The names of these bits. */
  namesOf(bits: number): string[]
  /** The keys of the record at hand that nothing reads. */
  unread(context: Pick<RecordContext, 'record' | 'root' | 'up'>): UnreadKeys | null
}

/** Gives each field its bit while a source is compiled. */
export type FieldBits = {
  of(field: FieldName): number
  watched(source: SourceConfig): WatchedFields
}

const watchedMax = 31
const sharedBit = 1 << watchedMax
/** Values of a message that are looked at for keys that nothing reads, and keys that are found. */
const limits = { visitsMax: 500, keysMax: 64 }

export function createFieldBits(): FieldBits {
  const names: string[] = []
  const configs: unknown[][] = []
  let aloneBits = sharedBit
  return { of, watched }

  function of({ name, isAlone, config }: FieldName): number {
    const known = names.indexOf(name)
    if (known === -1 && names.length >= watchedMax) return sharedBit
    const index = known === -1 ? names.push(name) - 1 : known
    ;(configs[index] ??= []).push(config)
    if (isAlone) aloneBits |= 1 << index
    return 1 << index
  }

  function watched(source: SourceConfig): WatchedFields {
    let find: FindUnread | null | undefined
    const { map: _map, description: _description, unused: _unused, thin: _thin, ...shared } = source
    return {
      names,
      fingerprints: configs.map((config) => fingerprintOf([shared, config])),
      aloneBits,
      keptBits: source.coalesce === undefined ? aloneBits : 0,
      judgedBits: (present) => (names[0] === position && (present & 1) === 0 ? aloneBits : ~0),
      bitsOf(some) {
        return some.reduce((bits, name) => bits | bitOf(names.indexOf(name)), 0)
      },
      namesOf(bits) {
        const own = names.filter((_name, index) => (bits & (1 << index)) !== 0)
        return (bits & sharedBit) === 0 ? own : [...own, 'others']
      },
      unread({ record, root, up }) {
        find ??= compileFindUnread(source, limits) ?? compileFindUnreadCollected(source, limits)
        return find?.(root, [{ record, root, up }]) ?? null
      },
    }
  }
}

function fingerprintOf(value: unknown): string {
  return hash('sha256', JSON.stringify(value), 'hex').slice(0, 16)
}

/** A field that the source had when the record was sent may be in the config no more. */
function bitOf(index: number): number {
  return index === -1 ? sharedBit : 1 << index
}

/** Of `keys`, the one whose name fits to the field best; null where there is none. */
export function nearestKey(field: string, keys: readonly string[]): string | null {
  const wanted = field === position ? ['latitude', 'longitude'] : [field]
  const near = keys.find((key) => {
    const found = fieldNear(key.slice(key.lastIndexOf('.') + 1))
    return found !== undefined && wanted.includes(found)
  })
  return near ?? keys[0] ?? null
}
