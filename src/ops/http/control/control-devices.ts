// control-devices.ts: POST /control/devices/forget?device=KEY&signal=TYPE&ledger=1: a device is forgotten:
// its record, what the mapping remembers, and with `ledger=1` its entries of the ledger. With `signal` only
// what the mapping remembers of that signal.

import { z } from 'zod'
import type { DaemonControl } from '../../types.ts'
import { forgetSchema } from '../answer-schemas/control-schemas.ts'
import { badRequest, ok, problem, type JsonAnswer } from '../json-answer.ts'
import { flag, requiredText, text } from '../http-routing/parameters.ts'
import type { HttpSource } from '../http-routing/route.ts'
import { controlRoute, type ControlRoute } from './control-route.ts'

export const deviceRoutes: readonly ControlRoute[] = [
  controlRoute({
    name: 'devices/forget',
    summary: 'Forgets a device: its record and what the mapping remembers of it.',
    parameters: z.strictObject({
      device: requiredText('Its key.'),
      signal: text('Only what the mapping remembers of this signal.'),
      ledger: flag('Deletes its entries of the ledger too.'),
    }),
    answers: { 200: { means: 'What was forgotten.', schema: forgetSchema } },
    async answer({ source, values: { device, signal: type = null, ledger }, signal }, control) {
      if (ledger) return forgetWithLedger(source, control, { device, type }, signal)
      const { values, records } = await control.forget(device, type)
      return ok({ device, signal: type, forgotten: values, records })
    },
  }),
]

async function forgetWithLedger(
  { stages: { mapping, ledger } }: HttpSource,
  control: DaemonControl,
  { device, type }: { device: string; type: string | null },
  signal: AbortSignal,
): Promise<JsonAnswer> {
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
  return problem(503, 'UNAVAILABLE', { what, why, act: 'Try again in a moment, or without the ledger.' })
}
