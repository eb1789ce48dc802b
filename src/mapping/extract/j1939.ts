// j1939.ts: frames of a truck's CAN bus (SAE J1939), as gateways list them in JSON: `{ "id": 419357952,
// "data": "F53700004FEF0000" }`.
//
// The identifier has 29 bits: priority 3, data page 2, PDU format 8, PDU specific 8, source address 8. The
// parameter group is data page, format and specific. A format below 240 addresses the frame to a node; its
// specific byte is that address and not part of the group. Numbers are little-endian and unsigned. Their
// highest values mean "absent": all ones "not available", FE "error", FB to FD are reserved. Of numbers with
// several bytes FA is absent too: the last 256th of the range, where a counter stops. A byte of FA is a
// value: 100 % in steps of 0.4.
//
// Several controllers send one group: two engines, or an engine and a device that counts its own hours. The
// source address tells them apart. A signal names the addresses that it is taken from, best first; without
// that it is taken from the engine (address 0). Of several frames of one address the first that has a value
// gives it. The config says which group and byte holds a value; the presets know some.
//
// A value that only another address sends is not taken, and reported: a person who misses the hours must see
// that they are there.

import { compileField, type LayoutField, type ReadField } from './binary-layout.ts'
import { framesIn, identifierOf } from './can-frames.ts'
import { setOwn } from '../path/path-eval.ts'

export const j1939Types = ['u8', 'u16le', 'u24le', 'u32le', 'bits'] as const

/** `any`: every address. */
export type J1939Source = number | 'any'

export type J1939Signal = LayoutField & {
  pgn: number
  type: (typeof j1939Types)[number]
  source: J1939Source | readonly J1939Source[]
}

/** `rankOf`: the place of the address among those of the signal, 0 for the best, -1 for one of others. */
type GroupSignal = { name: string; read: ReadField; rankOf: (address: number) => number }

/** PDU formats from here on belong to broadcast groups. */
const broadcastFrom = 240

/**
 * A value of another address than those of its signal. `why`: `of source 0x27, source: 0 is selected`;
 * `isFound`: the signal has a value nevertheless.
 */
export type OtherController = { into: string; signal: string; why: string; isFound: boolean }

/** Of one message. */
const othersMax = 16

/** The result gets what other controllers send in `others`. */
export function compileJ1939(
  into: string,
  signals: Readonly<Record<string, J1939Signal>>,
): (value: unknown, others?: OtherController[]) => Record<string, unknown> | undefined {
  const names = Object.keys(signals)
  const byGroup = new Map<number, GroupSignal[]>()
  for (const [name, signal] of Object.entries(signals)) {
    const read = compileField(signal, limitOf(signal))
    const one = { name, read, rankOf: compileRank([signal.source].flat()) }
    byGroup.set(signal.pgn, [...(byGroup.get(signal.pgn) ?? []), one])
  }
  return (value, others) => {
    let found: Record<string, unknown> | undefined
    const ranks = new Map<string, number>()
    /** Values that no frame can replace any more. */
    let final = 0
    let beside: { signal: string; address: number }[] | null = null
    for (const { id, data: bytes } of framesIn(value, (one) => byGroup.has(groupIn(one)))) {
      if (final === names.length) break
      for (const { name, read, rankOf } of byGroup.get(groupIn(id)) ?? []) {
        const rank = rankOf(id & 0xff)
        if (rank < 0) {
          beside ??= []
          if (beside.length < othersMax && read(bytes) !== undefined) addOther(beside, name, id & 0xff)
          continue
        }
        if (rank >= (ranks.get(name) ?? Number.POSITIVE_INFINITY)) continue
        const number = read(bytes)
        if (number === undefined) continue
        found ??= {}
        setOwn(found, name, number)
        ranks.set(name, rank)
        if (rank === 0) final += 1
      }
    }
    for (const { signal, address } of beside ?? []) {
      const why = `of source ${addressText(address)}, ${selectedText(signals[signal]!)}`
      others?.push({ into, signal, why, isFound: ranks.has(signal) })
    }
    return found
  }
}

/** A message repeats the frames of a controller. */
function addOther(others: { signal: string; address: number }[], signal: string, address: number): void {
  if (others.every((one) => one.signal !== signal || one.address !== address))
    others.push({ signal, address })
}

function selectedText({ source }: J1939Signal): string {
  return `source: ${Array.isArray(source) ? `[${source.join(', ')}]` : String(source)} is selected`
}

/** As it is written in tables of addresses: `0x27`. */
function addressText(address: number): string {
  return `0x${address.toString(16).padStart(2, '0').toUpperCase()}`
}

function compileRank(sources: readonly J1939Source[]): GroupSignal['rankOf'] {
  const others = sources.indexOf('any')
  return (address) => {
    const own = sources.indexOf(address)
    if (own === -1) return others
    return others === -1 ? own : Math.min(own, others)
  }
}

/** Whether a number can be a group: a group whose frames are addressed to a node ends in 00. */
export function isGroup(pgn: number): boolean {
  return pgn <= 0x3ffff && ((pgn >> 8) % 256 >= broadcastFrom || pgn % 256 === 0)
}

/** The parameter group number of an identifier; -1 for anything else. */
export function groupOf(id: unknown): number {
  const identifier = identifierOf(id)
  return identifier < 0 ? -1 : groupIn(identifier)
}

function groupIn(identifier: number): number {
  const group = (identifier >> 8) & 0x3ffff
  return ((group >> 8) & 0xff) < broadcastFrom ? group & 0x3ff00 : group
}

const limits = { u8: 0xfa, u16le: 0xf9ff, u24le: 0xf9ffff, u32le: 0xf9ffffff }

/** The largest value that does not mean "absent". */
function limitOf({ type, length = 1 }: J1939Signal): number {
  if (type !== 'bits') return limits[type]
  // One bit cannot mean "absent"; of two bits 10 is an error and 11 "not available". From a byte on the
  // rules of bytes hold.
  if (length >= 8) return 0xfb * 2 ** (length - 8) - 1
  return length === 1 ? 1 : 2 ** length - 3
}
