// views.ts: what is asked for over HTTP about devices and about what was put aside.
//
//   /devices?limit=        devices that were seen, worst clock first: name, asset, messages, when last, skew
//   /devices/{key}         one of them
//   /dead-letters?limit=   how many there are by stage, reason and source; and the oldest ones, without their bytes
//   /quarantine?limit=     devices whose messages are kept, with how many and since when
//
// All of them read at most what `scanMax` says and tell when there is more.

import type { DeadLetterEntry } from '../spool/spool.ts'
import type { DeviceView, Parts } from './parts.ts'
import { bounded } from '../std/quote.ts'

export type ViewAnswer = { kind: 'view'; value: unknown } | { kind: 'missing'; why: string }

const scanMax = 100_000
const limitDefault = 100
const limitMax = 1000
const groupsMax = 1000

/** Null where the path is none of these. */
export async function viewAt(path: string, query: URLSearchParams, parts: Parts): Promise<ViewAnswer | null> {
  const limit = Math.min(limitMax, Number(/^\d{1,6}$/.exec(query.get('limit') ?? '')?.[0] ?? limitDefault))
  if (path === '/devices') return found(await devicesOf(parts, limit))
  if (path.startsWith('/devices/')) return deviceOf(parts, path.slice('/devices/'.length))
  if (path === '/dead-letters') return found(await lettersOf(parts, limit))
  if (path === '/quarantine') return found(await quarantineOf(parts, limit))
  return null
}

function found(value: unknown): ViewAnswer {
  return value === null ? { kind: 'missing', why: 'The daemon is starting.' } : { kind: 'view', value }
}

async function devicesOf({ mapping }: Parts, limit: number) {
  if (!mapping) return null
  let devices: DeviceView[] = []
  let seen = 0
  for await (const slice of mapping.devices()) {
    seen += slice.length
    devices = [...devices, ...slice]
      .sort((a, b) => Math.abs(b.skewMs) - Math.abs(a.skewMs) || (a.device < b.device ? -1 : 1))
      .slice(0, limit)
  }
  return { seen, devices }
}

function deviceOf({ mapping }: Parts, key: string): ViewAnswer {
  let name = key
  try {
    name = decodeURIComponent(key)
  } catch (error) {
    // A lone percent sign may be part of a name.
    if (!(error instanceof URIError)) throw error
  }
  const value = mapping?.device(name) ?? null
  return value === null
    ? { kind: 'missing', why: 'No message of this device with a time of its own was mapped lately.' }
    : { kind: 'view', value }
}

type LetterGroup = {
  stage: string
  reason: string
  source: string | null
  count: number
  oldestAt: number
  latestAt: number
  /** Of the latest one. */
  detail: string
}

/** The answer of /dead-letters. */
export type DeadLettersView = {
  scanned: number
  /** There are more than were looked at. */
  more: boolean
  groups: readonly LetterGroup[]
  letters: readonly unknown[]
}

async function lettersOf({ aside }: Parts, limit: number): Promise<DeadLettersView | null> {
  if (!aside) return null
  const groups = new Map<string, LetterGroup>()
  const letters: unknown[] = []
  let scanned = 0
  for await (const entry of aside.deadLetters({ limit: scanMax })) {
    scanned += 1
    if (letters.length < limit) letters.push(shown(entry))
    const { stage, reason, envelope, at, detail } = entry.letter
    const source = envelope?.source ?? null
    const key = JSON.stringify([stage, reason, source])
    const group = groups.get(key)
    if (group === undefined && groups.size >= groupsMax) continue
    const { count = 0, oldestAt = at } = group ?? {}
    groups.set(key, {
      stage,
      reason: bounded(reason, 100),
      source,
      count: count + 1,
      oldestAt,
      latestAt: at,
      detail: bounded(detail),
    })
  }
  return {
    scanned,
    more: scanned === scanMax,
    groups: [...groups.values()].sort((a, b) => b.count - a.count),
    letters,
  }
}

function shown({ id, letter }: DeadLetterEntry) {
  const { at, stage, reason, detail, device, envelope, payloadId } = letter
  return {
    id,
    at,
    stage,
    reason,
    detail: bounded(detail),
    device,
    source: envelope?.source ?? null,
    topic: envelope === null ? null : bounded(envelope.topic),
    payloadId,
  }
}

async function quarantineOf({ aside }: Parts, limit: number) {
  if (!aside) return null
  const shelves: unknown[] = []
  for (const { shelf, messages, bytes } of aside.shelves()) {
    if (!shelf.startsWith('quarantine:') || messages === 0) continue
    const devices: unknown[] = []
    let more = false
    for await (const device of aside.keptDevices(shelf)) {
      more = devices.length === limit
      if (more) break
      devices.push(device)
    }
    shelves.push({ provider: shelf.slice('quarantine:'.length), messages, bytes, devices, more })
  }
  return { shelves }
}
