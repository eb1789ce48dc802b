// suspects.ts: what the last payloads at fault had in common with others: their device, or the value of the
// field that the service named. A refused batch is cut so that such payloads are alone at once.
//
// It also keeps the share of payloads at fault, which says how small the parts of a refused batch should be.
//
// Bound: `keysMax` keys, the oldest is forgotten; a batch with more than `suspectsMax` suspects is cut by
// size.

import { deviceOf, member, parsedPayload } from '../payload-json.ts'

export type Suspects = {
  /** Places of the payloads of a batch that are like those at fault; empty where none or too many are. */
  among(payloads: number, payload: (index: number) => Buffer): readonly number[]
  /** A payload turned out to be at fault; `fields`: those that the service named. */
  guilty(payload: Buffer, fields: readonly { field: string }[]): void
  /** So many payloads were accepted. */
  accepted(payloads: number): void
  /** Share of payloads at fault, 0 to 1; null while too few were found. */
  share(): number | null
}

const keysMax = 64
const suspectsMax = 16
const valueCharsMax = 64
/** Old payloads count half after so many new ones. */
const memoryPayloads = 5000
const guiltyToKnow = 2

export function createSuspects(): Suspects {
  const devices = new Set<string>()
  /** `path=value`, and the paths among them. */
  const values = new Set<string>()
  let paths: readonly string[] = []
  let guiltyCount = 0
  let payloadCount = 0

  return {
    among,
    guilty,
    accepted: count,
    share() {
      return guiltyCount < guiltyToKnow ? null : Math.min(1, guiltyCount / payloadCount)
    },
  }

  function count(payloads: number): void {
    payloadCount += payloads
    if (payloadCount <= memoryPayloads) return
    payloadCount /= 2
    guiltyCount /= 2
  }

  function among(payloads: number, payload: (index: number) => Buffer): readonly number[] {
    const found: number[] = []
    if (devices.size === 0 && values.size === 0) return found
    for (let index = 0; index < payloads; index += 1) {
      if (!isSuspect(parsedPayload(payload(index).toString('utf8')))) continue
      found.push(index)
      if (found.length > suspectsMax) return []
    }
    return found
  }

  function isSuspect(payload: unknown): boolean {
    const device = deviceOf(payload)
    if (device !== null && devices.has(device)) return true
    return paths.some((path) => values.has(`${path}=${valueAt(payload, path)}`))
  }

  function guilty(json: Buffer, fields: readonly { field: string }[]): void {
    count(1)
    guiltyCount += 1
    const payload = parsedPayload(json.toString('utf8'))
    const device = deviceOf(payload)
    if (device !== null) remember(devices, device)
    for (const { field } of fields.slice(0, 4)) {
      const value = valueAt(payload, field)
      // A missing field is what most payloads may have.
      if (value !== undefined) remember(values, `${field}=${value}`)
    }
    paths = [...new Set([...values].map((key) => key.slice(0, key.indexOf('='))))]
  }
}

function remember(keys: Set<string>, key: string): void {
  keys.delete(key)
  keys.add(key)
  const [oldest] = keys
  if (keys.size > keysMax && oldest !== undefined) keys.delete(oldest)
}

/** As JSON, bounded; undefined where the path leads nowhere. */
function valueAt(payload: unknown, path: string): string | undefined {
  let value = payload
  for (const name of path.split('.')) value = member(value, name)
  return value === undefined ? undefined : JSON.stringify(value).slice(0, valueCharsMax)
}
