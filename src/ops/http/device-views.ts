// device-views.ts: what is asked for over HTTP about devices and about what was put aside.
//
//   /devices?limit=        devices that were seen, worst clock first: name, asset, messages, when last, skew
//   /devices/{key}         one of them
//   /dead-letters?limit=   how many there are of each kind (dead-letters/dead-letter-groups.ts), and the oldest ones, without their bytes;
//                          of those that are asked for: stage, reason, device, source, provider, since, until
//   /ledger?device=&at=&from=&to=&payload=&batch=&request=&outcome=&limit=&after=
//                          what became of payloads (ledger/ledger-query.ts), the newest first
//   /quarantine?device=&limit=    quarantine-view.ts
//
// All of them read a bounded part and tell when there is more.

import { readLetterParams } from './dead-letter-params.ts'
import { assertNever } from '../../std/assert.ts'
import type { DeviceView, StageViews } from '../types.ts'
import { quarantineOf } from './quarantine-view.ts'

export type ViewAnswer =
  | { kind: 'view'; value: unknown }
  | { kind: 'missing'; why: string }
  | { kind: 'refused'; status: 400 | 503; what: string; why: string; act: string }

const limitDefault = 100
const limitMax = 1000

/** Null where the path is none of these. */
export async function viewAt(
  path: string,
  query: URLSearchParams,
  stages: StageViews,
  signal: AbortSignal,
): Promise<ViewAnswer | null> {
  const limit = Math.min(limitMax, Number(/^\d{1,6}$/.exec(query.get('limit') ?? '')?.[0] ?? limitDefault))
  if (path === '/devices') return found(await devicesOf(stages, limit))
  if (path.startsWith('/devices/')) return deviceOf(stages, path.slice('/devices/'.length))
  if (path === '/dead-letters') {
    const asked = readLetterParams(query, ['limit'])
    if (typeof asked === 'string') return { kind: 'missing', why: asked }
    return found((await stages.deadLetters?.list(asked, limit)) ?? null)
  }
  if (path === '/ledger') return ledgerOf(stages, query, signal)
  if (path === '/quarantine') return found(await quarantineOf(stages, { device: query.get('device'), limit }))
  return null
}

function found(value: unknown): ViewAnswer {
  return value === null ? { kind: 'missing', why: 'The daemon is starting.' } : { kind: 'view', value }
}

async function devicesOf({ mapping }: StageViews, limit: number) {
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

async function ledgerOf(
  { ledger }: StageViews,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<ViewAnswer> {
  if (!ledger)
    return { kind: 'missing', why: 'No ledger is kept (ledger.enabled), or the daemon is starting.' }
  const reply = await ledger.query(Object.fromEntries(query), signal)
  switch (reply.kind) {
    case 'answer':
      return { kind: 'view', value: reply.answer }
    case 'invalid':
      return { ...reply, kind: 'refused', status: 400 }
    case 'unavailable': {
      const what = 'The ledger cannot be asked now.'
      return { kind: 'refused', status: 503, what, why: reply.why, act: 'Ask again in a moment.' }
    }
    default:
      return assertNever(reply)
  }
}

function deviceOf({ mapping }: StageViews, key: string): ViewAnswer {
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
