// quarantine-view.ts: what is in quarantine, by device and reason; and the messages of one device.
//
//   /quarantine?limit=             number of messages by device and reason; the shelves, one a provider
//   /quarantine?device=&limit=     of this device alone, with its messages, oldest first, without their bytes
//
// Reads at most `scanMax` messages and reports when there are more.

import type { z } from 'zod'
import { isoTime } from '../../std/clock.ts'
import { devicesOf } from '../../domain/message.ts'
import { bounded } from '../../std/quote.ts'
import type { KeptEntry } from '../../spool/spool.ts'
import type { HttpSource } from './http-routing/route.ts'
import type { quarantineSchema } from './answer-schemas/answer-schemas.ts'

export type QuarantineView = z.output<typeof quarantineSchema>
type KeptGroup = QuarantineView['groups'][number]
type ShownMessage = QuarantineView['messages'][number]

const scanMax = 100_000
const groupsMax = 10_000

/** Null before the spool is open. */
export async function quarantineOf(
  { stages: { keptMessages: aside }, ourNow }: Pick<HttpSource, 'stages' | 'ourNow'>,
  { device, limit }: { device: string | null; limit: number },
): Promise<QuarantineView | null> {
  if (!aside) return null
  const shelves: QuarantineView['shelves'] = []
  const groups = new Map<string, KeptGroup>()
  const messages: ShownMessage[] = []
  let scanned = 0
  for (const { shelf, messages: count, bytes } of aside.shelves()) {
    const colon = shelf.indexOf(':')
    const kind = shelf.slice(0, colon)
    if ((kind !== 'quarantine' && kind !== 'clock') || count === 0) continue
    shelves.push({ kind, provider: shelf.slice(colon + 1), messages: count, bytes })
    for await (const entry of aside.keptMessages(shelf, device, { limit: scanMax - scanned })) {
      scanned += 1
      addTo(groups, entry, device)
      if (device !== null && messages.length < limit) messages.push(shown(entry))
    }
  }
  const sorted = [...groups.values()].sort((a, b) => b.messages - a.messages).slice(0, limit)
  const more = scanned === scanMax || sorted.length < groups.size || groups.size === groupsMax
  return { now: isoTime(ourNow()), shelves, scanned, more, groups: sorted, messages }
}

/** A message with records of several devices counts for each of them. */
function addTo(groups: Map<string, KeptGroup>, entry: KeptEntry, wanted: string | null): void {
  const devices = devicesOf(entry.message)
  if (devices.length === 0) addDevice(groups, entry, null)
  for (const device of devices) if (wanted === null || device === wanted) addDevice(groups, entry, device)
}

function addDevice(
  groups: Map<string, KeptGroup>,
  { keptAt, message }: KeptEntry,
  device: string | null,
): void {
  const { reason, detail } = message
  const key = JSON.stringify([device, reason])
  const at = isoTime(keptAt)
  const group = groups.get(key)
  if (group === undefined) {
    const times = { oldestAt: at, latestAt: at }
    if (groups.size < groupsMax)
      groups.set(key, { device, reason, messages: 1, ...times, detail: bounded(detail) })
    return
  }
  group.messages += 1
  if (at < group.oldestAt) group.oldestAt = at
  if (at < group.latestAt) return
  group.latestAt = at
  group.detail = bounded(detail)
}

function shown({ id, keptAt, message }: KeptEntry): ShownMessage {
  const { device, reason, detail, envelope } = message
  const { arrivedAt, source, topic } = envelope
  const times = { keptAt: isoTime(keptAt), arrivedAt: isoTime(arrivedAt) }
  return { id, device, reason, detail: bounded(detail), ...times, source, topic: bounded(topic) }
}
