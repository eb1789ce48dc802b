// fuzz-judge.ts: what fuzz.ts expects of a payload: it is valid for the service, each field is within its bounds,
// and it is one that its message can become. A violation is thrown.

import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import type { MapResult } from '../../src/mapping/mapping.ts'
import { createPayloadCheck, isJsonObject } from '../../src/sandbox/payload-check.ts'
import { outOfBounds } from '../support/payload-bounds.ts'
import type { FuzzReport, Json, Trial } from './fuzz.ts'

const check = createPayloadCheck(
  new Set(['payloadId', 'identity', 'content', 'position', 'signal', 'timestamp'] as const),
)

/** `message`: the one that they were made of, if it is one alone. */
export function judgePayloads(
  payloads: readonly MappedPayload[],
  { own, judge }: Trial,
  report: FuzzReport,
  message?: Message,
): void {
  const read = judge && message && objectIn(message.bytes)
  for (const { json, payloadId, windowKey, deviceTime } of payloads) {
    const payload: unknown = JSON.parse(json)
    if (!isJsonObject(payload)) throw new Error(`a payload is no object: ${json}`)
    const [problem] = check(payload, true)
    if (problem) throw new Error(`${problem.message} in ${json}`)
    const outside = outOfBounds(payload, own)
    if (outside !== null) throw new Error(`${outside} in ${json}`)
    const { gps, signalTimestamp } = payload
    if (payload['payloadId'] !== payloadId) throw new Error(`another payloadId than ${payloadId} in ${json}`)
    if (!/^[0-9a-f]{32}$/.test(windowKey)) throw new Error(`the window key ${windowKey}`)
    const wrong = read && judge(read, payload)
    if (wrong) throw new Error(`${wrong} in ${json}`)
    if (read) report.judged += 1
    if (deviceTime !== null && deviceTime !== signalTimestamp) throw new Error(`another time in ${json}`)
    if (!isJsonObject(gps)) continue
    if (gps['latitude'] === 0 && gps['longitude'] === 0) throw new Error(`a place of 0, 0 in ${json}`)
  }
  report.payloads += payloads.length
}

/** Undefined for bytes that JSON.parse does not read as they are. */
function objectIn(bytes: Buffer): Json | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return isJsonObject(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** For a message that has the same payloadIds whenever it comes, and with a judge the same payloads. */
export function refuseOther(again: MapResult, before: readonly MappedPayload[], { judge }: Trial): void {
  const textOf = ({ json, payloadId }: MappedPayload) => (judge === undefined ? payloadId : json)
  const texts = again.kind === 'payloads' ? again.payloads.map(textOf) : [again.kind]
  const expected = before.map(textOf)
  if (texts.join() !== expected.join())
    throw new Error(`mapped once more it is another one: ${expected.join()} became ${texts.join()}`)
}
