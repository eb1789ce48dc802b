// control-devices.ts: POST /control/devices/forget?device=KEY&signal=TYPE&ledger=1: a device is forgotten:
// its record, what the mapping remembers, and with `ledger=1` its entries of the ledger. With `signal` only
// what the mapping remembers of that signal.
//
// POST /control/devices/mute?device=NAME&for=7d, or `until`: its silence is no problem until then, because it
// is in the workshop. /control/devices/unmute?device=NAME ends that.

import { z } from 'zod'
import { isoTimeOrNull } from '../../../std/clock.ts'
import { quote } from '../../../std/quote.ts'
import type { DaemonControl, MuteEnd } from '../../types.ts'
import { forgetSchema, muteSchema } from '../answer-schemas/control-schemas.ts'
import { badRequest, ok, problem, type JsonAnswer } from '../json-answer.ts'
import { flag, requiredText, text } from '../http-routing/parameters.ts'
import type { HttpSource } from '../http-routing/route.ts'
import { controlRoute, type ControlRoute } from './control-route.ts'
import { endOfTime } from '../../../std/time-argument.ts'

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
  controlRoute({
    name: 'devices/mute',
    summary: 'The silence of a device is no problem for a time, because it is in the workshop.',
    parameters: z.strictObject({
      device: requiredText('Its key, its asset or its client id.'),
      for: text('For how long, such as 7d.'),
      until: text('Or until when: a date, or a date and time.'),
    }),
    answers: { 200: { means: 'Until when it is muted.', schema: muteSchema } },
    async answer({ source, values: { device, for: time, until } }, control) {
      const at = endOfTime(control.now(), { lasts: time, until })
      if (at === null)
        return badRequest('The end of the time is missing, or past.', 'Give for=7d, or until=2026-12-24.')
      return muted(source, control, device, { at, isLength: time !== undefined })
    },
  }),
  controlRoute({
    name: 'devices/unmute',
    summary: 'The silence of a device is a problem again.',
    parameters: z.strictObject({ device: requiredText('Its key, its asset or its client id.') }),
    answers: { 200: { means: 'It is not muted.', schema: muteSchema } },
    answer: async ({ source, values: { device } }, control) => muted(source, control, device, null),
  }),
]

function muted(
  { stages: { mapping } }: HttpSource,
  control: DaemonControl,
  name: string,
  end: MuteEnd | null,
): JsonAnswer {
  const device = mapping?.device(name)?.device ?? name
  const records = control.mute(device, end)
  // The device table may say a later time.
  if (records > 0)
    return ok({
      device,
      mutedUntil: mapping?.device(device)?.mutedUntil ?? isoTimeOrNull(end?.at ?? null),
      records,
    })
  const what = `No message of the device ${quote(device, 80)} is known.`
  const why = 'Only a device that has sent can be silent.'
  return problem(404, 'NOT_FOUND', { what, why, act: 'See `devices`.' })
}

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
