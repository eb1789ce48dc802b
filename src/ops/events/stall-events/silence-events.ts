// silence-events.ts: the events of devices that do not send: all of them, a part of the fleet, single ones.

import { isoTime } from '../../../std/clock.ts'
import { formatDuration, plural } from '../../../std/quantity.ts'
import { quote } from '../../../std/quote.ts'
import type { EventName, EventOf } from '../../../domain/event.ts'
import type { SilenceBasis, SilentDevice, SilentPart } from '../../../domain/event-fields/stall-event.ts'
import { noKey } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type SilenceEvent = Extract<
  EventName,
  'devices_silent' | 'devices_sending' | 'device_silent' | 'fleet_part_silent'
>

const devicesShown = 5

export const silenceEvents: EventTable<SilenceEvent> = {
  devices_silent: {
    level: {
      oneOf: ['debug', 'info', 'warn'],
      of: ({ first, quiet }) => (first ? (quiet ? 'info' : 'warn') : 'debug'),
    },
    raises: {
      DEVICES_SILENT: ({ sinceAt, silentMs, limitMs, basis, quiet }) => ({
        what:
          sinceAt === null
            ? `No device has sent anything yet, for ${formatDuration(silentMs)}.`
            : `No device has sent anything since ${isoTime(sinceAt)}.`,
        why: `${silenceReasons[basis]} ${formatDuration(limitMs)}.${quiet ? ' This is a quiet hour or day.' : ''}`,
        severity: quiet ? 'info' : 'warning',
        present: 1,
      }),
    },
  },
  devices_sending: {
    meaning: 'A message came after a long silence, or `ops.silence` allows that silence now.',
    level: 'info',
    text: ({ by }) =>
      by === 'message' ? 'Devices send again.' : 'ops.silence allows the silence of all devices now.',
    clears: { DEVICES_SILENT: noKey },
  },
  device_silent: {
    meaning: 'Single devices are silent while others send, or send again.',
    level: { oneOf: ['warn', 'info'], of: ({ total }) => (total === 0 ? 'info' : 'warn') },
    text: ({ devices, total }) =>
      total === 0 ? 'No single device is silent any more.' : silentText(devices, total),
    repeats: () => '',
    fields: ({ devices, total, of }) => ({
      total,
      of,
      devices: devices.slice(0, devicesShown).map(({ device }) => device),
    }),
    raises: {
      DEVICE_SILENT: ({ devices, total, of }) =>
        total === 0
          ? null
          : {
              what: silentText(devices, total),
              why: `Of ${plural(of, 'device')}, others have sent since for longer than ops.silence.device_after allows.`,
              present: total,
              causes: devices.map(({ device }) => device),
            },
    },
    clears: { DEVICE_SILENT: ({ total }) => (total === 0 ? null : undefined) },
  },
  fleet_part_silent: {
    meaning: 'Devices with something in common fell silent together while others send, or send again.',
    level: { oneOf: ['warn', 'info'], of: ({ devices }) => (devices === 0 ? 'info' : 'warn') },
    text: (event) => (event.devices === 0 ? `${partName(event)}: most devices send again.` : partText(event)),
    repeats: ({ part, name }) => `${part} ${name}`,
    raises: {
      FLEET_PART_SILENT: (event) =>
        event.devices === 0
          ? null
          : {
              key: partKey(event),
              what: partText(event),
              why:
                `They sent their last messages within ${formatDuration(event.withinMs)}, ` +
                `and other devices send on. Some of them: ${event.examples}.`,
              act: partActs[event.part],
              present: event.devices,
            },
    },
    clears: { FLEET_PART_SILENT: (event) => (event.devices === 0 ? partKey(event) : undefined) },
  },
}

const silenceReasons: Record<SilenceBasis, string> = {
  median: 'That is longer than 10 times the usual gap between messages, at least 30 s:',
  days: 'That is longer than the longest pause of such a day in the last 14 days:',
  setting: 'That is longer than ops.silence.after:',
  new: 'Too few messages came to know what is usual. The limit is',
}

const partActs: Record<SilentPart, string> = {
  address: 'Check the router, the link and the firewall behind this address.',
  bridge: 'Check the server of the bridge, and what publishes to it: the gateway is connected to it.',
  source: 'Check what these devices have in common: their make, their firmware, their topics.',
  provider: 'Check the platform of this provider: its devices send nothing, and those of others do.',
  all:
    'Check what these devices have in common: a network, the operator of their SIM cards, a site. ' +
    'Run `devices --state silent` to see them.',
}

type Part = EventOf<'fleet_part_silent'>

function partKey({ part, name }: Part): string {
  return part === 'all' ? 'all' : `${part} ${name}`
}

function partName({ part, name }: Part): string {
  return part === 'all' ? 'The fleet' : `${part} ${quote(name, 64)}`
}

function partText(event: Part): string {
  const { part, devices, of, total, lastAt } = event
  const which = part === 'all' ? '' : `, all of ${partName(event)}`
  const among =
    devices === of && of < total ? `${devices} of ${total} devices` : `${devices} of ${of} devices`
  return `${among}${which} are silent since ${isoTime(lastAt ?? 0)}.`
}

function silentText(devices: readonly SilentDevice[], total: number): string {
  const shown = devices.slice(0, devicesShown).map(({ device, assetId, lastAt }) => {
    const asset = assetId === device ? '' : ` (asset ${quote(assetId, 40)})`
    return `${quote(device, 40)}${asset} since ${isoTime(lastAt)}`
  })
  const more = total > shown.length ? `, and ${total - shown.length} more` : ''
  return `${plural(total, 'device')} ${total === 1 ? 'is' : 'are'} silent: ${shown.join(', ')}${more}.`
}
