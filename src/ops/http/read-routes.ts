// read-routes.ts: lists over HTTP: devices, dead letters, batches, the ledger and the quarantine.
//
//   /devices?limit=&state=&sort=    all devices that are listed or were seen (device-list.ts)
//   /devices/{key}         one of them
//   /dead-letters?limit=   their number by kind (dead-letters/dead-letter-groups.ts), and the oldest ones,
//                          without their bytes; selected by stage, reason, device, source, provider, since,
//                          until
//   /ledger?device=&at=&from=&to=&payload=&batch=&request=&outcome=&limit=&after=
//                          what became of payloads (ledger/ledger-query.ts), newest first
//   /quarantine?device=&limit=    quarantine-view.ts
//   /audit?since=&until=&limit=    changes that operators made (../audit), newest first; epoch milliseconds
//   /batches?provider=&reason=&olderThanMs=&limit=    sealed batches that are not settled, held first
//
// Each reads a bounded part and reports when there is more.

import { assertNever } from '../../std/assert.ts'
import { quote } from '../../std/quote.ts'
import type { StageViews } from '../types.ts'
import { readBatchParams } from './batch-params.ts'
import { deviceOf, devicesOf, readDeviceParams } from './device-list.ts'
import { readDeadLetterParams } from './dead-letter-params.ts'
import { badRequest, notFound, ok, problem, type JsonAnswer } from './json-answer.ts'
import { readAudit } from '../audit/audit.ts'
import { quarantineOf } from './quarantine-view.ts'

type Request = { path: string; query: URLSearchParams; signal: AbortSignal }

const limitDefault = 100
const limitMax = 1000

export async function answerRead(
  stages: StageViews & { spoolPath: string },
  { path, query, signal }: Request,
): Promise<JsonAnswer> {
  const limit = Math.min(limitMax, Number(/^\d{1,6}$/.exec(query.get('limit') ?? '')?.[0] ?? limitDefault))
  const found = (value: unknown) => (value === null ? notFound(path, 'The daemon is starting.') : ok(value))
  if (path === '/devices') {
    const selection = readDeviceParams(query, limit)
    if (typeof selection === 'string') return badRequest(selection, 'Correct the parameters.')
    return found(await devicesOf(stages, selection))
  }
  if (path.startsWith('/devices/'))
    return deviceOf(stages, path, { key: path.slice('/devices/'.length), query, signal })
  if (path === '/dead-letters') {
    const selection = readDeadLetterParams(query, ['limit'])
    if (typeof selection === 'string') return notFound(path, selection)
    return found((await stages.deadLetters?.list(selection, limit)) ?? null)
  }
  if (path === '/ledger') return ledgerOf(stages, path, query, signal)
  if (path === '/quarantine') return found(await quarantineOf(stages, { device: query.get('device'), limit }))
  if (path === '/audit') return auditOf(stages.spoolPath, query, limit)
  if (path === '/batches') {
    const providers = stages.batches?.providers ?? null
    const selection = readBatchParams(query, { others: ['limit'], providers })
    if (typeof selection === 'string') return badRequest(selection, 'Correct the parameters.')
    return found(stages.batches?.list(selection, limit) ?? null)
  }
  return notFound(path, 'The path is unknown.')
}

async function auditOf(folder: string, query: URLSearchParams, limit: number): Promise<JsonAnswer> {
  for (const [key, value] of query)
    if (!/^(since|until|limit)$/.test(key) || !/^\d{1,15}$/.test(value))
      return badRequest(`Unknown parameter or value: ${quote(key, 40)}.`, 'Use since, until and limit.')
  const timeIn = (key: string) => (query.has(key) ? { [key]: Number(query.get(key)) } : {})
  return ok(await readAudit(folder, { limit, ...timeIn('since'), ...timeIn('until') }))
}

async function ledgerOf(
  { ledger }: StageViews,
  path: string,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<JsonAnswer> {
  if (!ledger)
    return notFound(path, 'The ledger is switched off (ledger.enabled), or the daemon is starting.')
  const reply = await ledger.query(Object.fromEntries(query), signal)
  switch (reply.kind) {
    case 'answer':
      return ok(reply.answer)
    case 'invalid':
      return problem(400, reply)
    case 'unavailable': {
      const what = 'The ledger cannot be read now.'
      return problem(503, { what, why: reply.why, act: 'Try again in a moment.' })
    }
    default:
      return assertNever(reply)
  }
}
