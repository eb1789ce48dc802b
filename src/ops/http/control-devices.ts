// control-devices.ts: a device is forgotten: its record, what the mapping remembers, and with `ledger=1` its
// entries of the ledger. With `signal` only what the mapping remembers of that signal.

import { quote } from '../../std/quote.ts'
import type { DaemonControl, StageViews } from '../types.ts'
import { badRequest, ok, problem, type JsonAnswer } from './json-answer.ts'

const act = 'The parameters are device, signal and ledger.'

export async function forgetDevice(
  { mapping, ledger }: Pick<StageViews, 'mapping' | 'ledger'>,
  control: DaemonControl,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<JsonAnswer> {
  for (const key of query.keys())
    if (!['device', 'signal', 'ledger'].includes(key))
      return badRequest(`Unknown parameter ${quote(key, 40)}.`, act)
  const device = query.get('device') ?? ''
  if (device === '') return badRequest('The request names no device.', act)
  const type = query.get('signal')
  if (query.get('ledger') !== '1') {
    const { values, records } = await control.forget(device, type)
    return ok({ device, signal: type, forgotten: values, records })
  }
  if (type !== null) return badRequest('The ledger knows no signals.', 'Give signal or ledger, not both.')
  if (!ledger?.forget) return unavailable('It is switched off (ledger.enabled), or the daemon is starting.')
  // Payloads name the asset where `identify` of the source says so.
  const names = new Set([device, mapping?.device(device)?.assetId ?? device])
  let ledgerEntries = 0
  for (const name of names) {
    const report = await ledger.forget(name, signal)
    if (report.kind === 'unavailable') return unavailable(report.why)
    ledgerEntries += report.entries
  }
  const { values, records } = await control.forget(device, null)
  return ok({ device, signal: null, forgotten: values, records, ledgerEntries })
}

function unavailable(why: string): JsonAnswer {
  const what = 'The entries of the ledger cannot be deleted now, so nothing was forgotten.'
  return problem(503, { what, why, act: 'Try again in a moment, or without the ledger.' })
}
