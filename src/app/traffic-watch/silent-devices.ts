// silent-devices.ts: single devices that fell silent, and parts of the fleet that fell silent together, while
// others send. It is given each device at each look of the device monitor.
//
//   one device   silent for longer than `ops.silence.device_after`. `auto`: the larger of 24 h and three
//                times its longest pause of the last 15 days, so that weekends are no silence; not until it
//                is known for 14 days
//   a part       at least five devices, and four fifths of those that sent in the hour before, stopped within
//                a minute or two of their rhythms, and no one of them is due since: they have one thing in
//                common, the address, the bridge, the source, the provider, or nothing
//
// Silence is measured against the others: time in which no device sent counts for none (traffic-watch.ts says
// so), nor does time in which nothing could come. A pause of the whole fleet is one that is longer than the
// rhythm of those that end it lets expect; the last ones are kept, and are taken from the time of a silence.
// A device of a part that is silent is not named alone; one that is muted, or that the device table does not
// list, is not named at all.
//
// A part stays until half of its devices send again, are muted or are forgotten. Parts and pauses are kept
// over a restart, with the history of the traffic.

import { z } from 'zod'
import type { EpochMs } from '../../std/clock.ts'
import type { SilentPart, State } from '../../domain/condition-state.ts'
import { silentAfter, type Standing } from '../../device-records/device-records.ts'

export type SilentDevices = {
  /** Begins a look over all devices. `hasTable`: only listed devices count. */
  begin(hasTable: boolean): void
  add(standing: Standing): void
  /** All were added. */
  end(): void
  /** At the last look. */
  states(): readonly State[]
  record(): SilentRecord
}

const kinds = ['address', 'bridge', 'source', 'provider', 'all'] as const satisfies readonly SilentPart[]

const partsSchema = z.array(
  z.object({
    kind: z.enum(kinds),
    name: z.string(),
    at: z.number(),
    withinMs: z.number(),
    of: z.number(),
    devices: z.array(z.string()).max(100_000),
  }),
)
const recordSchema = z.object({
  parts: partsSchema.catch([]),
  /** In which no device sent, the earliest first. */
  pauses: z.array(z.object({ fromAt: z.number(), untilAt: z.number() })).catch([]),
  /** The last message of any device. */
  newestAt: z.number().nullable().catch(null),
})
export type SilentRecord = z.infer<typeof recordSchema>
type Part = SilentRecord['parts'][number]

export type SilentDevicesDeps = {
  now: () => EpochMs
  /** Of the client that sent the last message of the device; null where there is none. */
  addressOf: (standing: Standing) => string | null
  /** Message sources of which nothing can come now. */
  closed: () => ReadonlySet<string>
}

type Options = {
  /** As a reload changes it. */
  after: () => 'auto' | 'off' | number
  /** What `record` gave; anything else is nothing. */
  stored: unknown
}

const nothingKnown: SilentRecord = { parts: [], pauses: [], newestAt: null }

const dayMs = 86_400_000
const hourMs = 3_600_000
const autoMinMs = dayMs
const autoPauses = 3
const knownMs = 14 * dayMs
const partMin = 5
const partShare = 0.8
/** The devices of a part send their last messages within this time, or two of their gaps. */
const togetherMs = 60_000
const gapsTogether = 2
/** The gateway does not look for parts that fell silent longer ago. */
const partMs = dayMs
const namesMax = 200
/** Pauses of the whole fleet that are known; of more, the oldest ones count as time in which others sent. */
const pausesMax = 200

type Heard = Standing & { lastSeen: EpochMs }

export function createSilentDevices(
  { now, addressOf, closed }: SilentDevicesDeps,
  { after, stored }: Options,
): SilentDevices {
  const parsed = recordSchema.safeParse(stored)
  let { parts, pauses, newestAt } = parsed.success ? parsed.data : nothingKnown
  let heard: Heard[] = []
  let isListedOnly = false
  let closedSources: ReadonlySet<string> = new Set()
  /** The fallen devices of the last look for parts. */
  let lookedAt = ''
  let states: readonly State[] = []
  return {
    begin(hasTable) {
      heard = []
      isListedOnly = hasTable
      closedSources = closed()
    },
    add(standing) {
      const { lastSeen, isListed, mutedUntil } = standing
      if (lastSeen === null || (isListedOnly && !isListed)) return
      if (mutedUntil === null || mutedUntil <= now()) heard.push({ ...standing, lastSeen })
    },
    end() {
      const newest = heard.reduce((latest, { lastSeen }) => Math.max(latest, lastSeen), 0)
      notePause(newest)
      endParts()
      findParts(newest)
      states = [...parts.map(partState), ...silentAlone(newest)]
      heard = []
    },
    states: () => states,
    record: () => ({ parts, pauses, newestAt }),
  }

  /** Whether the fleet was silent before what came since the last look. */
  function notePause(newest: EpochMs): void {
    const before = newestAt ?? newest
    newestAt = newest
    // The clock was set back.
    if (newest < before) pauses = pauses.filter(({ untilAt }) => untilAt <= newest)
    const gaps = heard.flatMap(({ lastSeen, medianGapMs }) => (lastSeen > before ? (medianGapMs ?? []) : []))
    const usualMs = silentAfter(gaps.length === 0 ? null : Math.min(...gaps))
    if (newest - before > usualMs) pauses = [...pauses, { fromAt: before, untilAt: newest }].slice(-pausesMax)
  }

  /** Time since then in which devices sent. */
  function sentMsSince(at: EpochMs, newest: EpochMs): number {
    return pauses.reduce(
      (ms, { fromAt, untilAt }) => ms - Math.max(0, untilAt - Math.max(fromAt, at)),
      newest - at,
    )
  }

  function silentAlone(newest: EpochMs): State[] {
    const ofParts = new Set(parts.flatMap(({ devices }) => devices))
    const silent = heard
      .filter((one) => isSilentAlone(one, newest) && !ofParts.has(one.device))
      .sort((a, b) => a.lastSeen - b.lastSeen)
    const devices = silent.slice(0, namesMax).map(({ device, assetId, lastSeen }) => ({
      device,
      assetId,
      lastAt: lastSeen,
    }))
    const [total, of] = [silent.length, heard.length]
    return total === 0 ? [] : [{ code: 'DEVICE_SILENT', devices, total, of }]
  }

  function isSilentAlone(one: Heard, newest: EpochMs): boolean {
    const limitMs = limitOf(one)
    // Its silence is that of the others where these do not send either.
    const isLate = one.isSilent || one.medianGapMs === null
    if (limitMs === null || !isLate || newest - one.lastSeen < limitMs || !isOpen(one.from)) return false
    return sentMsSince(one.lastSeen, newest) >= limitMs
  }

  function isOpen(from: string | null): boolean {
    return from === null || !closedSources.has(from)
  }

  function limitOf({ firstSeen, longestPauseMs }: Heard): number | null {
    const limit = after()
    if (limit === 'off') return null
    if (limit !== 'auto') return limit
    if (firstSeen === null || now() - firstSeen < knownMs) return null
    return Math.max(autoMinMs, autoPauses * longestPauseMs)
  }

  /** Devices that send again, that are muted, or that were forgotten, are of no part. */
  function endParts(): void {
    const silent = new Map(heard.map((one) => [one.device, one]))
    parts = parts.filter((part) => {
      const left = part.devices.filter((device) => (silent.get(device)?.lastSeen ?? Infinity) <= part.at)
      return left.length > 0 && left.length * 2 > part.devices.length
    })
  }

  function findParts(newest: EpochMs): void {
    const known = new Set(parts.flatMap(({ devices }) => devices))
    const from = now() - partMs
    const fallen = heard.filter(
      (one) => one.lastSeen >= from && hasFallen(one) && isOpen(one.from) && !known.has(one.device),
    )
    const last = fallen.reduce((latest, { lastSeen }) => Math.max(latest, lastSeen), 0)
    const mark = JSON.stringify([fallen.length, last, sentMsSince(last, newest) >= togetherMs])
    // A fleet that is parked is looked at once.
    if (fallen.length < partMin || mark === lookedAt) return
    lookedAt = mark
    const found = kinds.flatMap((kind) => partsOf(kind, fallen))
    // The largest one explains the others; of equal ones, the one with most in common.
    found.sort((a, b) => b.devices.length - a.devices.length || kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
    for (const part of found) {
      if (part.devices.some((device) => known.has(device))) continue
      // Else the whole gateway is silent.
      if (sentMsSince(part.at, newest) < togetherMs) continue
      for (const device of part.devices) known.add(device)
      parts.push(part)
    }
  }

  /** One that sends seldom, and often pauses so long, says nothing by doing so again. */
  function hasFallen({ isSilent, medianGapMs, longestPauseMs, lastSeen }: Heard): boolean {
    if (!isSilent || medianGapMs === null) return false
    return medianGapMs <= togetherMs || now() - lastSeen > longestPauseMs
  }

  function partsOf(kind: SilentPart, fallen: readonly Heard[]): Part[] {
    const all = Map.groupBy(heard, (one) => commonOf(kind, one))
    // What all devices have in common says nothing.
    if (kind !== 'all' && all.size < 2) return []
    const groups = Map.groupBy(fallen, (one) => commonOf(kind, one))
    return [...groups].flatMap(([name, ones]) => {
      if (name === null || ones.length < partMin) return []
      const together = largestTogether(ones)
      const [first] = together
      if (first === undefined || together.length < partMin) return []
      const sentBefore = all.get(name)!.filter(({ lastSeen }) => lastSeen >= first.lastSeen - hourMs)
      if (together.length < sentBefore.length * partShare) return []
      const at = together.at(-1)!.lastSeen
      const devices = together.map(({ device }) => device)
      return [{ kind, name, at, withinMs: at - first.lastSeen, of: sentBefore.length, devices }]
    })
  }

  function commonOf(kind: SilentPart, one: Heard): string | null {
    switch (kind) {
      case 'address':
        return addressOf(one)
      case 'bridge':
        return one.from
      case 'source':
        return one.source
      case 'provider':
        return one.provider
      case 'all':
      default:
        return ''
    }
  }

  function partState({ kind: part, name, at: lastAt, withinMs, of, devices }: Part): State {
    const members = new Set(devices)
    const silent = heard.filter(({ device, lastSeen }) => lastSeen <= lastAt && members.has(device)).length
    const examples = devices.slice(0, 5).join(', ')
    const counts = { devices: silent, of, total: heard.length }
    return { code: 'FLEET_PART_SILENT', part, name, ...counts, lastAt, withinMs, examples }
  }
}

/** The most that sent their last messages within the time of their rhythms, the earliest first. */
function largestTogether(ones: readonly Heard[]): readonly Heard[] {
  const sorted = ones.toSorted((a, b) => a.lastSeen - b.lastSeen)
  let best: readonly Heard[] = []
  let start = 0
  for (let end = 0; end < sorted.length; end += 1) {
    const last = sorted[end]!
    const spanMs = Math.max(togetherMs, gapsTogether * (last.medianGapMs ?? 0))
    while (last.lastSeen - sorted[start]!.lastSeen > spanMs) start += 1
    if (end - start + 1 > best.length) best = sorted.slice(start, end + 1)
  }
  return best
}
