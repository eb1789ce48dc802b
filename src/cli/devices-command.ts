// devices-command.ts: `devices`: the devices that the running daemon has seen, the largest clock errors
// first.

import { Command } from 'commander'
import { formatDuration, plural } from '../std/quantity.ts'
import { bounded, quote, visible } from '../std/quote.ts'
import type { ClientView, DeviceView } from '../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { columns } from './terminal/text-table.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { agoText } from './terminal/text-format.ts'

type Devices = { seen: number; devices: readonly DeviceView[]; clients: readonly ClientView[] }

/** The transmission of a message takes time, so a smaller difference is not a clock error. */
const skewMinMs = 500

export const devicesCommand: BuildCommand = (io, done) =>
  new Command('devices')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(forgetCommand(io, done))

const listCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('list'))
    .description('List the devices, the largest clock errors first.')
    .action(async (options: DaemonOptions) => {
      const devices = await requestByOptions(options, io, { path: '/devices', method: 'GET' })
      printAnswer(io, options, devices as Devices, (answer) => textOf(answer, Date.now()))
      done(0)
    })

const forgetCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('forget'))
    .description('Forget what the mapping remembers of a device: its lock and fix, its odometer readings.')
    .argument('<key>', 'key of the device, as `devices` lists it')
    .option('--signal <type>', 'forget this signal or value only, such as OBD_LIFETIME_ODOMETER')
    .action(async (key: string, options: DaemonOptions & { signal?: string }) => {
      const { signal } = options
      const query = new URLSearchParams({ device: key, ...(signal !== undefined && { signal }) })
      const request = { path: `/control/devices/forget?${query.toString()}`, method: 'POST' } as const
      const report = (await requestByOptions(options, io, request)) as { forgotten: number }
      printAnswer(io, options, report, ({ forgotten }) =>
        forgotten === 0
          ? 'Nothing was remembered of this device or signal.\n'
          : `${plural(forgotten, 'value')} forgotten. The next reading counts anew.\n`,
      )
      done(report.forgotten === 0 ? 1 : 0)
    })

function textOf({ seen, devices, clients }: Devices, now: number): string {
  return `${[...deviceLines({ seen, devices }, now), ...clientLines(clients, now)].join('\n')}\n`
}

function deviceLines({ seen, devices }: Pick<Devices, 'seen' | 'devices'>, now: number): readonly string[] {
  if (seen === 0) return ['No device was seen since the last reload of the mapping.']
  const rows = devices.map(({ device, assetId, listed, messages, lastSeen, skewMs, client }) => [
    device,
    listed ? (assetId ?? '-') : 'not listed',
    String(messages),
    agoText(now - lastSeen),
    clockText(skewMs),
    client === null ? '-' : stateText(client),
  ])
  const rest = devices.length < seen ? [`and ${seen - devices.length} more`] : []
  const table = columns([['device', 'asset', 'messages', 'last seen', 'clock', 'connection'], ...rows])
  return [...table, ...rest, ...withheldLines(devices)]
}

/** Values that devices sent and that were left out, or are not plausible. */
function withheldLines(devices: readonly DeviceView[]): readonly string[] {
  const lines = devices.flatMap(({ device, withheld }) =>
    withheld.map(({ field, reason, count, isSent, lastValue }) => {
      const last = lastValue === null ? '' : `, last ${lastValue}`
      return `device ${quote(device, 64)}: ${field} ${isSent ? 'sent' : 'omitted'} ${count} x: ${reason}${last}`
    }),
  )
  return lines.length === 0 ? [] : ['', ...lines]
}

/** Clients in which the gateway found a fault: many of them are devices from which no message was mapped. */
function clientLines(clients: readonly ClientView[], now: number): readonly string[] {
  const lines: string[] = []
  for (const client of clients) {
    const { clientId, identity, address, refusedMessages, fault } = client
    if (fault === null) continue
    const by = [
      ...(identity === null ? [] : [`identity ${quote(identity, 64)}`]),
      address ?? 'unknown address',
    ]
    const refused = refusedMessages > 0 ? ` ${plural(refusedMessages, 'message')} refused by a rule.` : ''
    lines.push(
      `client ${quote(clientId, 64)} (${by.join(', ')}): ${stateText(client)}, ` +
        `${plural(fault.count, 'fault')}, the last ${agoText(now - fault.at)}: ` +
        `${visible(bounded(fault.detail))} (${fault.reason})${refused}`,
    )
  }
  return lines.length === 0 ? [] : ['', ...lines]
}

function stateText({ state, willCame }: ClientView): string {
  if (state === 'lost') return willCame ? 'connection lost (will)' : 'connection lost'
  return state
}

function clockText(skewMs: number): string {
  if (Math.abs(skewMs) < skewMinMs) return 'ok'
  return `${formatDuration(Math.abs(skewMs))} ${skewMs < 0 ? 'ahead' : 'behind, or messages late'}`
}
