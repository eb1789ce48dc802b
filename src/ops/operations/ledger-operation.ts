// ledger-operation.ts: what became of payloads, with the requestId of the service: the filters and the
// columns of the ledger, for HTTP, the command `ledger` and the page.

import { z } from 'zod'
import { isoTimes } from '../../std/iso-times.ts'
import { zonedTime } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import { ledgerOutcomes } from '../../domain/settlement.ts'
import type { LedgerQuery } from '../../ledger/ledger.ts'
import { ledgerSchema } from '../http/answer-schemas/answer-schemas.ts'
import { deviceKeyOf } from '../http/device-list.ts'
import { ok, problem, starting } from '../http/json-answer.ts'
import { choice, limit, text, time } from '../http/http-routing/parameters.ts'
import { operation, type Refusal } from './operation.ts'
import type { Block, Cell } from './shown-block.ts'

export type ShownLedger = z.output<typeof ledgerSchema>

/** Of one answer; a larger export takes several. */
export const ledgerLimitMax = 10_000
/** `at` selects this long before and after the given time. */
const aroundMs = 60_000

const id = { value: 'id' } as const
const parameters = z.strictObject({
  device: text('Only payloads of this device.', { value: 'name' }),
  at: time('Only payloads measured within a minute of this time.', 'Measured at'),
  from: time('Only payloads measured at this time or later.', 'Measured from'),
  to: time('Only payloads measured at this time or earlier.'),
  payload: text('Only the payload with this payloadId.', { ...id, label: 'payloadId' }),
  batch: text('Only payloads of the batch with this batchId.', { ...id, label: 'batchId' }),
  request: text('Only payloads of the answer with this requestId.', { ...id, label: 'requestId' }),
  outcome: choice('Only this outcome.', ledgerOutcomes, { value: 'name' }),
  limit: limit('At most this many entries.', ledgerLimitMax, { isHidden: true }),
  after: text('`next` of the last answer, to continue.', { isHidden: true }),
})

type Values = z.output<typeof parameters>

export const ledgerOperation = operation({
  name: 'ledger',
  path: '/ledger',
  effect: 'lists',
  summary: 'Show what became of payloads, the newest first.',
  notes: [
    'A time is 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z, 2h (ago), or milliseconds ' +
      'since 1970. Without a zone it is one of the gateway: ops.time_zone.',
    'A payload that was retried has one entry for each answer. Without a running daemon, the command ' +
      'reads the ledger in the spool of --config.',
  ],
  parameters,
  means: 'The entries.',
  schema: ledgerSchema,
  refuses: refusalOf,
  async answer({ source: { stages }, values, signal }) {
    const { ledger, spool } = stages
    if (!ledger) return spool === null ? starting() : ledgerOff
    const { device } = values
    const query = { ...values, ...(device !== undefined && { device: deviceKeyOf(stages, device) }) }
    const reply = await ledger.query(ledgerQueryOf(query), signal)
    if (reply.kind === 'answer') return ok(isoTimes({ ...reply.answer, more: reply.answer.next !== null }))
    const what = 'The ledger cannot be read now.'
    return problem(503, 'UNAVAILABLE', { what, why: reply.why, act: 'Try again in a moment.' })
  },
  text: ledgerText,
})

const ledgerOff = problem(404, 'SWITCHED_OFF', {
  what: 'There is no ledger.',
  why: 'The ledger is switched off (ledger.enabled), or the daemon is starting.',
  act: 'Set ledger.enabled to true and restart the daemon.',
})

function refusalOf({ at, from, to, after }: Values): Refusal | null {
  const act = 'See `telemetry-gateway ledger --help`.'
  if (at !== undefined && (from !== undefined || to !== undefined))
    return { what: '`at` is given with `from` or `to`.', why: 'Each of them sets the time range.', act }
  if (from !== undefined && to !== undefined && from > to)
    return { what: '`from` is later than `to`.', why: 'No time is between them.', act }
  if (after !== undefined && !/^\d{1,15}\.\d{1,9}$/.test(after))
    return { what: '`after` does not say where to continue.', why: 'It is not the `next` of an answer.', act }
  return null
}

export function ledgerQueryOf({ at, ...others }: Values): LedgerQuery {
  return at === undefined ? others : { ...others, from: at - aroundMs, to: at + aroundMs }
}

function ledgerText({ entries, oldestAt, behind }: ShownLedger): Block[] {
  const since = oldestAt === null ? 'It is empty.' : `Its oldest entry is of ${zonedTime(oldestAt)}.`
  return [
    ...(entries.length === 0 ? [`The ledger has no such entry. ${since}`] : []),
    {
      caption: 'the newest settlement first',
      head: ['settled', 'device', 'measured', 'outcome', 'requestId', 'batchId', 'payloadId'],
      rows: entries.map(rowOf),
    },
    ...(behind > 0 ? [`${plural(behind, 'settled batch', 'settled batches')} not in the ledger yet.`] : []),
  ]
}

function rowOf({
  at,
  deviceTime,
  outcome,
  step,
  reason,
  detail,
  ...one
}: ShownLedger['entries'][number]): Cell[] {
  const what = step === null ? outcome : `${outcome} after attempt ${step + 1}`
  const why = [reason, detail].filter((part) => part !== null && part !== '').join(': ')
  return [
    { text: zonedTime(at), at },
    linked('device', one.device),
    deviceTime === null ? '-' : { text: zonedTime(deviceTime), at: deviceTime },
    { text: why === '' ? what : `${what} (${bounded(why, 80)})`, state: outcome },
    linked('request', one.requestId),
    linked('batch', one.batchId),
    linked('payload', one.payloadId),
  ]
}

/** Those that have it, too. */
function linked(name: 'device' | 'request' | 'batch' | 'payload', value: string | null): Cell {
  return value === null ? '-' : { text: value, to: ['/page/ledger', { [name]: value }] }
}
