// mark-codec.ts: the bytes of one slot of the high-water mark.
//
//   offset  size  field
//        0     4  'TGM1'
//        4     4  CRC-32 of everything behind it
//        8     4  bytes of the slot that are used
//       12     4  lanes that are left out for lack of room
//       16     8  serial number: the slot with the larger one is valid
//       24     8  writes
//       32     4  the next lane number to give
//       36     2  names           38  2  lanes
//       40     .  names: length (2), UTF-8. The first two are the id of the store and its MANIFEST
//        .    28  for each lane: lane (4), provider (2), role (2), step (2), schedule (2), nextSeq (8),
//                 open payloads (8)
//
// Numbers are big-endian. A provider and a schedule are positions in the list of names.

import { crc32 } from 'node:zlib'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { LaneRole } from '../views.ts'

export type MarkedLane = {
  id: LaneId
  provider: ProviderName
  role: LaneRole
  nextSeq: number
  /** Payloads in it that are not settled. */
  open: number
}

export type Mark = {
  serial: number
  /** Id of the store (FormatRecord.instance). */
  instance: string
  /** What CURRENT of the database named when this process opened it; empty if unknown. */
  manifest: string
  writes: number
  /** No lane has this number or a larger one yet. */
  nextLane: number
  lanes: readonly MarkedLane[]
  lanesLeftOut: number
}

/** Where the parts of a slot are that change with every write. */
export type MarkLayout = { used: number; offsets: ReadonlyMap<LaneId, number> }

const magic = Buffer.from('TGM1')
const headBytes = 40
const laneBytes = 28
const roles = ['live', 'backfill', 'retry'] as const

/** Lays a slot out in `target`; sealMark makes it whole. Lanes that do not fit are left out. */
export function layOutMark(
  target: Buffer,
  mark: Pick<Mark, 'instance' | 'manifest' | 'nextLane' | 'lanes'>,
): MarkLayout {
  const names = [mark.instance, mark.manifest]
  const positions = new Map<string, number>()
  let bytes = headBytes + bytesOf(mark.instance) + bytesOf(mark.manifest)
  const lanes: MarkedLane[] = []
  for (const lane of mark.lanes) {
    const added = [lane.provider, scheduleOf(lane.role)].filter((name) => !positions.has(name))
    const moreBytes = laneBytes + added.reduce((sum, name) => sum + bytesOf(name), 0)
    if (bytes + moreBytes > target.length) break
    bytes += moreBytes
    for (const name of added) {
      positions.set(name, names.length)
      names.push(name)
    }
    lanes.push(lane)
  }
  magic.copy(target, 0)
  target.writeUInt32BE(mark.lanes.length - lanes.length, 12)
  target.writeUInt32BE(mark.nextLane, 32)
  target.writeUInt16BE(names.length, 36)
  target.writeUInt16BE(lanes.length, 38)
  let at = headBytes
  for (const name of names) {
    const length = target.write(name, at + 2)
    target.writeUInt16BE(length, at)
    at += 2 + length
  }
  const offsets = new Map<LaneId, number>()
  for (const lane of lanes) {
    const { id, provider, role, nextSeq, open } = lane
    target.writeUInt32BE(id, at)
    target.writeUInt16BE(positions.get(provider) ?? 0, at + 4)
    target.writeUInt16BE(roles.indexOf(role.kind), at + 6)
    target.writeUInt16BE(role.kind === 'retry' ? role.step : 0, at + 8)
    target.writeUInt16BE(positions.get(scheduleOf(role)) ?? 0, at + 10)
    writeLaneNumbers(target, nextSeq, open, at + 12)
    offsets.set(id, at + 12)
    at += laneBytes
  }
  target.writeUInt32BE(at, 8)
  return { used: at, offsets }
}

function bytesOf(name: string): number {
  return 2 + Buffer.byteLength(name)
}

/** Writes what changes with every write, and the checksum. */
export function sealMark(
  target: Buffer,
  { used }: MarkLayout,
  { serial, writes, nextLane }: Pick<Mark, 'serial' | 'writes' | 'nextLane'>,
): void {
  writeNumber(target, serial, 16)
  writeNumber(target, writes, 24)
  target.writeUInt32BE(nextLane, 32)
  target.writeUInt32BE(crc32(target.subarray(8, used)), 4)
}

/** At the place that the layout has for the lane. */
export function writeLaneNumbers(target: Buffer, nextSeq: number, open: number, offset: number): void {
  writeNumber(target, nextSeq, offset)
  // Where the counts of a lane do not add up, that is reported elsewhere.
  writeNumber(target, Math.max(0, open), offset + 8)
}

function writeNumber(target: Buffer, value: number, offset: number): void {
  target.writeUInt32BE(Math.floor(value / 2 ** 32), offset)
  target.writeUInt32BE(value % 2 ** 32, offset + 4)
}

/** Null if the slot is empty or damaged. */
export function decodeMark(slot: Buffer): Mark | null {
  if (slot.length < headBytes || !slot.subarray(0, 4).equals(magic)) return null
  const used = slot.readUInt32BE(8)
  if (used < headBytes || used > slot.length) return null
  if (crc32(slot.subarray(8, used)) !== slot.readUInt32BE(4)) return null
  const names: string[] = []
  let at = headBytes
  for (let left = slot.readUInt16BE(36); left > 0; left -= 1) {
    const end = at + 2 + slot.readUInt16BE(at)
    names.push(slot.toString('utf8', at + 2, end))
    at = end
  }
  const lanes: MarkedLane[] = []
  for (let left = slot.readUInt16BE(38); left > 0; left -= 1) {
    const provider = (names[slot.readUInt16BE(at + 4)] ?? '') as ProviderName
    lanes.push({
      id: slot.readUInt32BE(at) as LaneId,
      provider,
      role: roleAt(slot, at, names),
      nextSeq: readNumber(slot, at + 12),
      open: readNumber(slot, at + 20),
    })
    at += laneBytes
  }
  return {
    serial: readNumber(slot, 16),
    instance: names[0] ?? '',
    manifest: names[1] ?? '',
    writes: readNumber(slot, 24),
    nextLane: slot.readUInt32BE(32),
    lanes,
    lanesLeftOut: slot.readUInt32BE(12),
  }
}

function roleAt(slot: Buffer, at: number, names: readonly string[]): LaneRole {
  const kind = roles[slot.readUInt16BE(at + 6)] ?? 'backfill'
  if (kind !== 'retry') return { kind }
  return { kind, schedule: names[slot.readUInt16BE(at + 10)] ?? '', step: slot.readUInt16BE(at + 8) }
}

/** The schedule of a retry lane; the other roles have none. */
function scheduleOf(role: LaneRole): string {
  return role.kind === 'retry' ? role.schedule : ''
}

function readNumber(slot: Buffer, offset: number): number {
  return slot.readUInt32BE(offset) * 2 ** 32 + slot.readUInt32BE(offset + 4)
}
