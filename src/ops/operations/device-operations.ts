// device-operations.ts: devices that are listed, were seen or were refused: the list of them, and what an
// operator changes: one is forgotten, or its silence is no problem for a time, because it is in the workshop.

import { z } from 'zod'
import { isoTime, isoTimeOrNull, zonedTime } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import { endOfTime } from '../../std/time-argument.ts'
import { deviceOrderNames, deviceOrders, deviceStateNames } from '../../domain/device-state.ts'
import type { DeviceFields } from '../../mapping/mapping.ts'
import type { DaemonControl, MuteEnd } from '../types.ts'
import { acceptSchema, forgetSchema, kickSchema, muteSchema } from '../http/answer-schemas/control-schemas.ts'
import { deviceSchema, devicesSchema } from '../http/answer-schemas/device-schemas.ts'
import { deviceOf, devicesOf, withHours } from '../http/device-list.ts'
import { quarantineOf } from '../http/quarantine-view.ts'
import { badRequest, faultAnswer, ok, problem, starting, type JsonAnswer } from '../http/json-answer.ts'
import { choice, flag, limit, requiredText, text } from '../http/http-routing/parameters.ts'
import type { HttpSource } from '../http/http-routing/route.ts'
import { endRefused, noEnd, untilWhen } from './condition-operations.ts'
import { devicesText, deviceText } from './device-text.ts'
import { operation, type Operation } from './operation.ts'

/** Fields of a row of the device table: the parameter, the column, and the words of the help. */
const columns = [
  ['asset', 'asset_id', 'id', 'Asset of the device. Without it, the key.'],
  ['type', 'asset_type', 'type', 'Type of the asset.'],
  ['operator', 'operator', 'name', 'Operator of the asset.'],
  ['carrier', 'carrier', 'name', 'Carrier.'],
  ['provider', 'provider', 'name', 'Provider of the config.'],
  ['manufacturer', 'manufacturer', 'name', 'Manufacturer of the device.'],
  ['model', 'model', 'name', 'Model of the device.'],
  ['privacy', 'privacy', 'profile', 'Privacy profile of the config.'],
  ['zone', 'zone', 'name', 'Time zone of its local times, such as Europe/Berlin.'],
] as const

/** Of parameters of `devices/accept`. */
export function deviceRowOf(values: { device: string } & Record<string, unknown>): DeviceFields {
  const given = columns.filter(([parameter]) => values[parameter] !== undefined)
  return {
    device: values.device,
    ...Object.fromEntries(given.map(([parameter, column]) => [column, String(values[parameter])])),
  }
}

const name = { value: 'name' }
const named = requiredText('Its key, its asset or its client id.', { value: 'device', isArgument: true })

/** And the order. */
export const deviceFilters = {
  find: text('Only devices with this in their key, asset, client id or user name.', {
    value: 'text',
    isArgument: true,
    label: 'Name, asset or client id',
  }),
  state: choice('Only devices in this state.', deviceStateNames, { value: 'state' }),
  source: text('Only devices whose last message this source took.', name),
  provider: text('Only devices of this provider.', name),
  address: text('Only devices whose client has this address, or one that begins with it.', {
    value: 'address',
  }),
  sort: choice('The order.', deviceOrderNames, { value: 'order' }),
}

export const deviceOperations: readonly Operation[] = [
  operation({
    name: 'devices/list',
    path: '/devices',
    effect: 'lists',
    summary: 'List all devices, the silent and refused ones first: since when, and why.',
    notes: [
      'A device is silent when its last message is longer ago than 10 times its usual gap, and than 30 s. ' +
        'A device that is in the device table and never sent is in the list, too, and so is a client of the broker ' +
        'that is connected and sends nothing, or sends only messages that name no device.',
      `Orders of --sort: ${deviceOrderNames.map((one) => `${one} (${deviceOrders[one]})`).join('; ')}.`,
    ],
    parameters: z.strictObject({
      ...deviceFilters,
      hours: flag('Shows the messages of each of the last 24 hours.', { isHidden: true }),
      limit: limit('At most this many devices, and this many clients with a fault.'),
    }),
    means: 'The devices, and how many there are in each state.',
    schema: devicesSchema,
    async answer({ source, values: { sort = 'state', hours, ...selection }, turn }) {
      const list = await devicesOf(source.stages, { ...selection, sort }, turn)
      if (list === null) return starting()
      const devices = hours ? await withHours(source.stages, list.devices, turn) : list.devices
      return ok({ now: isoTime(source.ourNow()), ...list, devices })
    },
    text: devicesText,
  }),
  operation({
    name: 'devices/show',
    path: '/devices/{key}',
    effect: 'lists',
    summary: 'Show a device: its connection, its last position, what the service answered, what was lost.',
    notes: [
      'The last 20 messages since the start of the daemon are shown raw, with their payloads and what became of ' +
        'each, up to the requestId of the service. None are kept for assets with a privacy profile.',
    ],
    parameters: z.strictObject({
      key: requiredText('Key of the device, its asset, its MQTT client id or its MQTT user name.', {
        value: 'key',
        isArgument: true,
        isInPath: true,
      }),
      messages: flag('Shows its last messages too: raw, mapped, and what became of them.', {
        isHidden: true,
      }),
      explain: flag('Explains each value of the last messages, as `map --explain` does.'),
    }),
    means: 'The device.',
    schema: deviceSchema,
    // `key` stands in the path.
    answer: ({ source, key, values: { messages, explain }, signal }) =>
      deviceOf(source, { key, messages, explain, signal }),
    text: deviceText,
  }),
  operation({
    name: 'devices/accept',
    effect: 'changes',
    summary: 'Add a device that sends and is not listed to the device table, and release its messages.',
    parameters: z.strictObject({
      device: requiredText('Its key, as `devices` lists it.', { value: 'key', isArgument: true }),
      ...Object.fromEntries(columns.map(([name, , value, said]) => [name, text(said, { value })])),
    }),
    notes: [
      'The daemon changes the file that devices.file names, where it may write there. With --config, the command ' +
        'changes it. Its messages in quarantine are mapped in their order as soon as the table is in force.',
    ],
    means: 'The row is in the table, and in force.',
    schema: acceptSchema,
    async run({ source, values }, control) {
      const { device: key } = values
      const found = source.stages.mapping?.device(key) ?? null
      const device = found?.kind === 'device' ? found : null
      // Its record may be gone, with a kill soon after its first message, or be forgotten.
      const kept = await quarantineOf(source, { device: key, limit: 1 })
      const quarantined = kept?.scanned ?? 0
      if (device === null && quarantined === 0)
        return problem(404, 'NOT_FOUND', {
          what: `No message of a device ${quote(key, 80)} is known.`,
          why: 'Only a device that sends can be accepted.',
          act: 'See `devices` for those that do. Add another one with `devices add`.',
        })
      if (device?.listed === true) throw deviceListed(key)
      const { file, reload } = await control.accept(deviceRowOf(values))
      if (reload.kind === 'refused') return faultAnswer(422, reload.fault)
      return ok({ device: key, file, quarantined })
    },
    text: ({ device, file, quarantined }) => [
      `${quote(device, 80)} is in the device table ${file}, and in force.`,
      ...(quarantined > 0
        ? ['Its messages leave the quarantine. `quarantine list` shows those that are left.']
        : []),
    ],
  }),
  operation({
    name: 'devices/forget',
    effect: 'changes',
    summary: 'Forget a device: its history in `devices`, and what the mapping remembers of it.',
    notes: [
      'The mapping remembers the last lock and fix of a device, and its odometer readings. Messages in the ' +
        'spool and dead letters stay. A device that sends again begins anew.',
      'After --ledger, an import of dead letters does not know any more what of the device was delivered.',
      'Exit status 1: nothing was known of it.',
    ],
    parameters: z.strictObject({
      device: requiredText('Its key, as `devices` lists it.', { value: 'key', isArgument: true }),
      signal: text(
        'Only what the mapping remembers of this signal or value, such as OBD_LIFETIME_ODOMETER.',
        {
          value: 'type',
        },
      ),
      ledger: flag('Deletes its entries of the ledger, too.'),
    }),
    means: 'What was forgotten.',
    schema: forgetSchema,
    async run({ source, values: { device, signal: type = null, ledger }, signal }, control) {
      if (ledger) return forgetWithLedger(source, control, { device, type }, signal)
      const forgotten = await control.forget(device, type)
      if (forgotten === null) return noRecords()
      return ok({ device, signal: type, forgotten: forgotten.values, records: forgotten.records })
    },
    text({ forgotten, records, ledgerEntries = 0 }) {
      const parts = [
        ...(records > 0 ? ['Its history is deleted.'] : []),
        ...(ledgerEntries > 0 ? [`${plural(ledgerEntries, 'entry', 'entries')} of the ledger deleted.`] : []),
        ...(forgotten > 0 ? [`${plural(forgotten, 'value')} forgotten. The next reading counts anew.`] : []),
      ]
      return [parts.length === 0 ? 'Nothing was remembered of this device or signal.' : parts.join(' ')]
    },
    isDone: ({ forgotten, records, ledgerEntries = 0 }) => forgotten + records + ledgerEntries > 0,
  }),
  operation({
    name: 'clients/kick',
    effect: 'changes',
    summary: 'Close the open connections of a client, a user or an address.',
    notes: [
      'Nothing of what it sent is lost. A client that may connect does so again at once: to keep it out, ' +
        'withdraw its user or certificate.',
      'Exit status 1: none was connected.',
    ],
    parameters: z.strictObject({
      name: requiredText('Its client id, its user or the name of its certificate, or its address.', {
        value: 'name',
        isArgument: true,
      }),
    }),
    means: 'How many were closed.',
    schema: kickSchema,
    run: ({ values: { name } }, control) => ok({ name, closed: control.kick(name) }),
    text: ({ name, closed }) => [
      closed === 0
        ? `No connected client has the client id, user or address ${quote(name, 80)}.`
        : `${plural(closed, 'connection')} of ${quote(name, 80)} closed.`,
    ],
    isDone: ({ closed }) => closed > 0,
  }),
  operation({
    name: 'devices/mute',
    effect: 'changes',
    summary: 'Say that the silence of a device is no problem for a time: it is in the workshop.',
    notes: ['DEVICE_SILENT and FLEET_PART_SILENT leave it out. It is delivered as ever.'],
    parameters: z.strictObject({ device: named, ...untilWhen }),
    means: 'Until when it is muted.',
    schema: muteSchema,
    refuses: endRefused,
    run({ source, values: { device, for: lasts, until } }, control) {
      const at = endOfTime(control.now(), { lasts, until })
      if (at === null) return problem(400, 'REQUEST_INVALID', noEnd)
      return muted(source, control, device, { at, isLength: lasts !== undefined })
    },
    text: ({ device, mutedUntil }) => [
      `The silence of ${quote(device, 80)} is no problem until ${zonedTime(mutedUntil ?? '')}.`,
    ],
  }),
  operation({
    name: 'devices/unmute',
    effect: 'changes',
    summary: 'Say that the silence of a device is a problem again.',
    parameters: z.strictObject({ device: named }),
    means: 'It is not muted, unless the device table says so.',
    schema: muteSchema,
    run: ({ source, values: { device } }, control) => muted(source, control, device, null),
    text: ({ device, mutedUntil }) => [
      mutedUntil === null
        ? `The silence of ${quote(device, 80)} is a problem again.`
        : `The silence of ${quote(device, 80)} is no problem until ${zonedTime(mutedUntil)}: column muted_until of the device table.`,
    ],
  }),
]

export function deviceListed(key: string): GatewayError {
  return new GatewayError('DEVICE_LISTED', {
    what: `The device ${quote(key, 80)} is in the device table already.`,
    why: 'Only a device that is not listed can be accepted.',
    act: 'Edit its row, or use `devices add --replace`.',
  })
}

async function muted(
  { stages: { mapping } }: HttpSource,
  control: DaemonControl,
  name: string,
  end: MuteEnd | null,
): Promise<JsonAnswer> {
  const device = mapping?.device(name)?.device ?? name
  const records = await control.mute(device, end)
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
  const forgotten = await control.forget(device, null)
  if (forgotten === null) return noRecords()
  const { values, records } = forgotten
  return ok({ device, signal: null, forgotten: values, records, ledgerEntries })
}

function noRecords(): JsonAnswer {
  return problem(503, 'UNAVAILABLE', {
    what: 'The records of devices cannot be changed now, so the device was not forgotten.',
    why: 'Their database is not open, or could not be written. `status` shows the reason.',
    act: 'Try again when it is.',
  })
}

function unavailable(why: string): JsonAnswer {
  const what = 'The entries of the ledger cannot be deleted now, so nothing was forgotten.'
  return problem(503, 'UNAVAILABLE', { what, why, act: 'Try again in a moment, or without the ledger.' })
}
