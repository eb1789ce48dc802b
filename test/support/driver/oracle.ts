// oracle.ts: what must hold between what devices saw acknowledged and where it came: at the service, or among the dead
// letters of the gateway. It asks neither the gateway nor the counters of the service.
//
//   lost         acknowledged, and nowhere
//   twice        at more places than it was sent: an effect that the batchId could have prevented. `byTwo`: by two gateways,
//                which only the engine between them could have prevented
//   unknown      at the service, and no device sent it
//   wrongEnd     among the dead letters instead of at the service, or the other way round
//   wrongContent other values than those that were sent
//
// Each is a list of names, so that a finding says which message it is.

import type { Arrival } from './service.ts'

export type End = 'service' | 'dead letter'

/** A message that a device sent; messages with the same name cannot be told apart at the service. */
export type Expected = {
  name: string
  isAcked: boolean
  end?: End
  /** Undefined: any. */
  content?: string
  /** Nothing tells the gateway for sure that a copy is the same message. */
  mayRepeat?: boolean
}

export type Came = { name: string; end?: End; gateway?: string; content?: string }

export type Findings = {
  lost: string[]
  twice: string[]
  byTwo: string[]
  unknown: string[]
  wrongEnd: string[]
  wrongContent: string[]
}

type Place = { sent: number; acked: number; expected: Expected; gateways: string[] }

export const nameOf = (device: string, ts: number) => `${device} ${ts}`

export function judge(expected: Iterable<Expected>, came: Iterable<Came>): Findings {
  const found: Findings = { lost: [], twice: [], byTwo: [], unknown: [], wrongEnd: [], wrongContent: [] }
  const places = new Map<string, Place>()
  for (const one of expected) {
    const place = places.get(one.name) ?? { sent: 0, acked: 0, expected: one, gateways: [] }
    places.set(one.name, place)
    place.sent += 1
    if (one.isAcked) place.acked += 1
  }
  for (const { name, end = 'service', gateway = '', content } of came) {
    const place = places.get(name)
    if (place === undefined) {
      found.unknown.push(name)
      continue
    }
    const { gateways, sent, expected: one } = place
    if (gateways.length >= sent && one.mayRepeat !== true)
      (gateways.includes(gateway) ? found.twice : found.byTwo).push(name)
    gateways.push(gateway)
    if (end !== (one.end ?? 'service')) found.wrongEnd.push(`${name} (${end})`)
    if (one.content !== undefined && content !== undefined && content !== one.content)
      found.wrongContent.push(`${name}: ${content} instead of ${one.content}`)
  }
  for (const [name, { acked, gateways }] of places) if (gateways.length < acked) found.lost.push(name)
  return found
}

type Run = { batch: string; first: number; last: number }

/**
 * Messages of one gateway that were not taken in the order of their device: within a batch, and of batches that cannot be
 * put in an order in which the times of every device ascend. A batch has what was taken, in the order of taking, and
 * never changes. The service accepts batches in another order where late payloads wait for fresh ones, and where a
 * submission had no answer: its batch is sent again, as a whole.
 */
export function wrongOrders(arrivals: readonly Arrival[]): number {
  const byGateway = Map.groupBy(arrivals, ({ gateway }) => gateway)
  return [...byGateway.values()].reduce((sum, own) => sum + wrongOrdersIn(own), 0)
}

function wrongOrdersIn(arrivals: readonly Arrival[]): number {
  let wrong = 0
  const runs = new Map<string, Map<string, Run>>()
  for (const { batchId, payloadId, device, ts } of arrivals) {
    const batch = batchId ?? payloadId
    const ofDevice = runs.get(device) ?? new Map<string, Run>()
    runs.set(device, ofDevice)
    const run = ofDevice.get(batch) ?? { batch, first: ts, last: -Infinity }
    ofDevice.set(batch, run)
    if (ts <= run.last) wrong += 1
    run.last = Math.max(run.last, ts)
    run.first = Math.min(run.first, ts)
  }
  const after = new Map<string, Set<string>>()
  for (const ofDevice of runs.values()) {
    const sorted = [...ofDevice.values()].toSorted((one, other) => one.first - other.first)
    for (const [index, { batch, last }] of sorted.entries()) {
      const following = after.get(batch) ?? new Set()
      after.set(batch, following)
      const next = sorted[index + 1]
      if (next === undefined) continue
      if (next.first <= last) wrong += 1
      following.add(next.batch)
    }
  }
  return wrong + inCircles(after)
}

/** How many batches have no place in an order. */
function inCircles(after: ReadonlyMap<string, ReadonlySet<string>>): number {
  const before = new Map([...after.keys()].map((batch) => [batch, 0]))
  for (const following of after.values())
    for (const next of following) before.set(next, before.get(next)! + 1)
  const ready = [...before].filter(([, count]) => count === 0).map(([batch]) => batch)
  for (let batch = ready.pop(); batch !== undefined; batch = ready.pop()) {
    before.delete(batch)
    for (const next of after.get(batch)!) {
      before.set(next, before.get(next)! - 1)
      if (before.get(next) === 0) ready.push(next)
    }
  }
  return before.size
}
