// obd.ts: answers of a vehicle to OBD requests (ISO 15031-5, on ISO 15765-2 and -4), as gateways list the
// frames of the CAN bus in JSON: `{ "id": 2024, "data": [6, 65, 166, 0, 13, 195, 212] }`.
//
//   id       7E8 to 7EF, or 18DAF1xx with 29 bits: the control unit that answers. 7E8 is the engine
//   frames   0L          an answer of L bytes in one frame
//            1L LL       the first frame of an answer of LLL bytes
//            2N          the next ones, N counts 1 to F, 0, 1, ...
//   answer   service + 40, then the identifier (one byte; two in service 22), then the data
//
// Where several control units answer, that with the lowest identifier counts. An answer that is not complete
// in the list, whose frames are out of order, or that has another length than it says, gives nothing. Numbers
// have the highest byte first.

import { setOwn } from '../path/path-eval.ts'
import { compileField, type LayoutField, type ReadField, type ReadFields } from './binary-layout.ts'
import { framesIn } from './can-frames.ts'

export type ObdSignal = LayoutField & { service: number; pid: number }

const engine = 0x7e8
const lastUnit = 0x7ef
const longUnits = 0x18daf100

/** Services from here on have identifiers of two bytes. */
const wideFrom = 0x22

type Answer = { unit: number; parts: Buffer[]; length: number; size: number; next: number }

export function compileObd(signals: Readonly<Record<string, ObdSignal>>): ReadFields<unknown> {
  const byKey = Map.groupBy(
    Object.entries(signals).map(([name, signal]) => ({
      name,
      key: keyOf(signal.service, signal.pid),
      read: compileField(signal),
    })),
    ({ key }) => key,
  )
  return (value) => {
    const answers = answersIn(value)
    let found: Record<string, unknown> | undefined
    for (const answer of answers) {
      const { key, data } = dataOf(answer)
      for (const { name, read } of byKey.get(key) ?? []) found = withValue(found, name, read, data)
    }
    return found
  }
}

function withValue(
  found: Record<string, unknown> | undefined,
  name: string,
  read: ReadField,
  data: Buffer,
): Record<string, unknown> | undefined {
  if (found && Object.hasOwn(found, name)) return found
  const number = read(data)
  if (number === undefined) return found
  const values = found ?? {}
  setOwn(values, name, number)
  return values
}

/** The complete answers, those of the lowest control unit first. */
function answersIn(value: unknown): Buffer[] {
  const open = new Map<number, Answer>()
  const complete: { unit: number; bytes: Buffer }[] = []
  for (const { id: unit, data } of framesIn(value, isUnit)) {
    if (data.length < 2) continue
    const bytes = answerOf(open, unit, data)
    if (bytes) complete.push({ unit, bytes })
  }
  return complete.toSorted((a, b) => a.unit - b.unit).map(({ bytes }) => bytes)
}

/** The answer that this frame completes. */
function answerOf(open: Map<number, Answer>, unit: number, data: Buffer): Buffer | undefined {
  const first = data[0] ?? 0
  switch (first >> 4) {
    case 0:
      open.delete(unit)
      return first >= 2 && first < data.length ? data.subarray(1, 1 + first) : undefined
    case 1: {
      const part = data.subarray(2)
      const length = ((first & 0x0f) << 8) + (data[1] ?? 0)
      open.set(unit, { unit, parts: [part], length, size: part.length, next: 1 })
      return undefined
    }
    case 2:
      return continued(open, unit, data)
    default:
      return undefined
  }
}

function continued(open: Map<number, Answer>, unit: number, data: Buffer): Buffer | undefined {
  const answer = open.get(unit)
  if (!answer) return undefined
  const part = data.subarray(1)
  answer.parts.push(part)
  answer.size += part.length
  const isNext = ((data[0] ?? 0) & 0x0f) === answer.next
  answer.next = (answer.next + 1) % 16
  if (isNext && answer.size < answer.length) return undefined
  open.delete(unit)
  return isNext ? Buffer.concat(answer.parts).subarray(0, answer.length) : undefined
}

/** `key` is -1 for a refusal or another message. */
function dataOf(answer: Buffer): { key: number; data: Buffer } {
  const service = (answer[0] ?? 0) - 0x40
  const isWide = service >= wideFrom
  if (service < 1 || answer.length < (isWide ? 3 : 2)) return { key: -1, data: answer }
  const pid = isWide ? answer.readUInt16BE(1) : (answer[1] ?? 0)
  return { key: keyOf(service, pid), data: answer.subarray(isWide ? 3 : 2) }
}

function keyOf(service: number, pid: number): number {
  return service * 0x10000 + pid
}

/** Whether it is the identifier of a control unit that answers. */
function isUnit(id: number): boolean {
  return (id >= engine && id <= lastUnit) || (id >= longUnits && id <= longUnits + 0xff)
}
