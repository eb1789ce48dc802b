// device-conditions.ts: the conditions of devices: those that are silent, map to nothing, repeat, or send
// what cannot be.

import { zonedTime } from '../../std/clock.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { listText, quote } from '../../std/quote.ts'
import type { SilenceBasis, SilentPart, StateFacts } from '../../domain/condition-state.ts'
import type { ConditionTable } from './types.ts'

type DeviceCode =
  | 'DEVICES_SILENT'
  | 'DEVICE_SILENT'
  | 'FLEET_PART_SILENT'
  | 'NOTHING_MAPPED'
  | 'DEVICES_REPEATING'
  | 'DEVICES_NOT_MAPPED'
  | 'MODEL_UNKNOWN'
  | 'VALUES_WITHHELD'
  | 'POSITIONS_SWAPPED'
  | 'CLOCK_SUSPECT'
  | 'FIELD_LOST'
  | 'DEVICES_HOURS_OFF'

/** Characters of the names of silent devices, so that the sentence fits in a condition. */
const silentLengthMax = 240

export const deviceConditions: ConditionTable<DeviceCode> = {
  DEVICES_SILENT: {
    severity: 'warning',
    stops: 'receiving',
    meaning:
      'No device of the whole gateway sends for longer than usual (ops.silence). In quiet hours its severity is ' +
      '`info`.',
    act:
      'Check the network of the depot, and that devices can reach the listeners or the broker of the bridge (`status` ' +
      'shows the addresses). ' +
      '`devices` shows who sent last.',
    cause: ({ sinceAt, silentMs, limitMs, basis, quiet }) => ({
      what:
        sinceAt === null
          ? `No device has sent anything yet, for ${formatDuration(silentMs)}.`
          : `No device has sent anything since ${zonedTime(sinceAt)}.`,
      why: `${silenceReasons[basis]} ${formatDuration(limitMs)}.${quiet ? ' This is a quiet hour or day.' : ''}`,
      severity: quiet ? 'info' : 'warning',
    }),
  },
  DEVICE_SILENT: {
    severity: 'warning',
    meaning: 'Single devices are silent for longer than ops.silence.device_after, while others send.',
    act:
      'Run `devices show KEY` for what is known of it. Where its silence is no fault, run `devices mute KEY --for 7d`, ' +
      'or `devices forget KEY` where it is gone.',
    cause: ({ devices, total, of }) => {
      const shown = devices.map(({ device, assetId, lastAt }) => {
        const asset = assetId === device ? '' : ` (asset ${quote(assetId, 40)})`
        return `${quote(device, 40)}${asset} since ${zonedTime(lastAt)}`
      })
      const list = listText(shown, { total, lengthMax: silentLengthMax })
      return {
        what: `${plural(total, 'device')} ${total === 1 ? 'is' : 'are'} silent: ${list}.`,
        why: `Of ${plural(of, 'device')}, others have sent since for longer than ops.silence.device_after allows.`,
        present: total,
        causes: devices.map(({ device }) => device),
      }
    },
  },
  FLEET_PART_SILENT: {
    severity: 'warning',
    meaning:
      'At least five devices with something in common, and most of those that have it, fell silent at once. Other ' +
      'devices send.',
    act: 'Check what they have in common: a router, a link, a site.',
    cause: ({ part, name, devices, of, total, lastAt, withinMs, examples }) => {
      const which = part === 'all' ? '' : `, all of ${part} ${quote(name, 64)}`
      const among =
        devices === of && of < total ? `${devices} of ${total} devices` : `${devices} of ${of} devices`
      return {
        key: part === 'all' ? 'all' : `${part} ${name}`,
        what: `${among}${which} are silent since ${zonedTime(lastAt)}.`,
        why:
          `They sent their last messages within ${formatDuration(withinMs)}, and other devices send on. ` +
          `Some of them: ${examples}.`,
        act: partActs[part],
        present: devices,
      }
    },
  },
  NOTHING_MAPPED: {
    severity: 'warning',
    meaning: 'Devices send, and none of their messages becomes a new payload.',
    act:
      'Use `tap` to see the messages, and `map --explain` with one of them. Check topics and sources of the ' +
      'config, and the device table. Where the messages are duplicates, see DEVICES_REPEATING.',
    cause: ({ messages, duplicates, spanMs, reasons }) => ({
      what:
        duplicates === messages
          ? `Devices send, and nothing new comes: each of the last ${plural(messages, 'message')} in ` +
            `${formatDuration(spanMs)} is a duplicate.`
          : `The last ${plural(messages, 'message')} in ${formatDuration(spanMs)} became no new payload.`,
      why: `${reasons}.`,
      present: messages,
    }),
  },
  DEVICES_REPEATING: {
    severity: 'warning',
    meaning:
      'Devices send the same messages again and again: each is a duplicate, which is acknowledged and not delivered. ' +
      '`info` where they are less than a tenth of the devices that send.',
    act:
      'Run `devices --state repeating`, and `devices show KEY` for one of them. Check its clock, its receiver and its ' +
      'firmware: the time and the values of its messages do not change. Nothing where it is parked and repeats its ' +
      'last fix.',
    cause: (found) => ({
      what: `The messages of ${shareOf(found)} bring nothing new, such as those of ${quote(found.example, 80)}.`,
      why: 'Each of their last messages is a duplicate: its time and values came before.',
      severity: found.isMany ? 'warning' : 'info',
      present: found.devices,
    }),
  },
  DEVICES_NOT_MAPPED: {
    severity: 'warning',
    meaning:
      'Devices send, and their messages give no payload, while those of other devices do. `info` where the ' +
      'mapping ignores what they send, or where they are less than a tenth of the devices that send, and none of them ' +
      'was mapped before.',
    act:
      'Run `devices --state not_mapped`, and `devices show KEY` for one of them. Correct the source, or add the device ' +
      'to the table. For FUTURE and PAST set the clock of the device.',
    cause: (found) => ({
      what: `The messages of ${shareOf(found)} give no payload, such as those of ${quote(found.example, 80)}.`,
      why: `${found.reasons}.`,
      severity: found.isMany || found.named.length > 0 ? 'warning' : 'info',
      present: found.devices,
      causes: found.named,
    }),
  },
  MODEL_UNKNOWN: {
    severity: 'warning',
    meaning: 'Some devices have no known model. Fields that depend on the model are omitted.',
    act:
      'Fill in the column `model` of the device table, or set `model` of the source if all its devices ' +
      'have the same model.',
    cause: ({ source, devices, what }) => ({
      key: source,
      what: `No known model for ${plural(devices, 'device')} of source ${quote(source, 64)}. Omitted: ${what}.`,
      why: 'The meaning of some ids depends on the model. Neither device table nor source names it.',
      present: devices,
    }),
  },
  VALUES_WITHHELD: {
    severity: 'warning',
    meaning: 'Most values of a field of some devices are not plausible. They are not sent.',
    act:
      'See `/devices/KEY` on ops.listen: it lists what was omitted, and the last value. Check path, unit and scale of the field in the ' +
      'source with `map --explain`, and the wiring of the device. If the values are right, set `plausibility` of ' +
      'the source. After a replaced unit, run `devices forget KEY`.',
    cause: ({ source, device, devices, field, withheld, records, reason }) => ({
      key: source,
      what:
        `${withheld} of the last ${plural(records, 'record')} of device ${quote(device, 64)} had no plausible ` +
        `${field}${othersText(devices)} (source ${quote(source, 64)}).`,
      why: `The reason is mostly: ${reason}. Such values are omitted, or flagged, by \`plausibility\`.`,
      present: devices,
    }),
  },
  POSITIONS_SWAPPED: {
    severity: 'warning',
    meaning: 'The latitude and longitude of some devices look swapped. They are sent as they are.',
    act:
      'Check the paths of `latitude` and `longitude` in the source, or the settings of the device. If the device ' +
      'really is where it says, nothing needs to be done.',
    cause: ({ source, device, devices }) => ({
      key: source,
      what:
        `Latitude and longitude of device ${quote(device, 64)}${othersText(devices)} look swapped ` +
        `(source ${quote(source, 64)}).`,
      why: 'The position is far from all other devices, and near them when they are swapped. It is sent as it is.',
      present: devices,
    }),
  },
  CLOCK_SUSPECT: {
    severity: 'error',
    meaning: 'Most devices are off by the same time, so the clock of this machine is probably wrong.',
    act: 'Check the clock (`timedatectl`). If it is right, find out what the devices have in common.',
    cause: ({ skewMs, devices, judged }) => ({
      what:
        `The clock of this machine is probably wrong: ${devices} of ${judged} devices agree that it is ` +
        `${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}.`,
      why:
        'The clocks of devices are independent of each other, so a common error comes from the ' +
        'clock of this machine.' +
        (skewMs > 0 ? ' Another possible cause: all of them send stored messages.' : ''),
    }),
  },
  FIELD_LOST: {
    severity: 'warning',
    meaning:
      'A field that devices of a source had is in their messages no more: since the mapping was changed, or ' +
      'since they name it otherwise.',
    act:
      'Correct the path of the field in `map` of the source (`map --explain` shows what a message has) and reload. ' +
      'Then `dead-letters remap` sends the values that are missing, and none twice. Where the devices ' +
      'do without the field, remove it from `map`.',
    cause: (lost) => ({
      key: `${lost.source}|${lost.field}`,
      present: lost.devices,
      what: lostText(lost),
      why: lostWhy(lost),
      ...(lost.isKept ? {} : { act: lostActWithoutKept }),
    }),
  },
  DEVICES_HOURS_OFF: {
    severity: 'warning',
    meaning: 'The clocks of devices are off by whole hours. What is behind is delivered with these times.',
    act:
      'Set the time zone of the devices to UTC, or `zone` in `map.time` of their source where the time has no ' +
      'zone of its own. Where it says UTC and is local, add `shift`, such as `shift: 2h` for clocks that are 2 h behind.',
    cause: ({ offsetMs, devices, example }) => {
      const hours = `${formatDuration(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead'}`
      return {
        key: String(offsetMs),
        what:
          devices === 1
            ? `The clock of ${example} is ${hours}.`
            : `The clocks of ${devices} devices, such as ${example}, are ${hours}.`,
        why: 'The last 15 messages of each agree. Such a device sends its local time as if it were UTC.',
        present: devices,
      }
    },
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

function shareOf({ devices, sending }: Pick<StateFacts['DEVICES_REPEATING'], 'devices' | 'sending'>): string {
  return `${devices} of ${plural(sending, 'device')} that send`
}

function othersText(devices: number): string {
  return devices === 1 ? '' : ` and of ${plural(devices - 1, 'other device')}`
}

function lostText({ source, field, since, devices, of, isByMapping }: StateFacts['FIELD_LOST']): string {
  const when = isByMapping ? 'since the mapping was changed at' : 'any more, the first of them since'
  return (
    `${devices} of ${plural(of, 'device')} that sent ${fieldText(field)} (source ${quote(source, 64)}) send none ` +
    `${when} ${zonedTime(since)}.`
  )
}

function lostWhy({ key, isKeyRead, isByMapping, isKept }: StateFacts['FIELD_LOST']): string {
  const cause = isKeyRead
    ? `The devices write ${quote(key ?? '', 64)} otherwise, probably after an update: the mapping cannot read its value.`
    : isByMapping
      ? 'What the mapping of the source reads now finds nothing, or is not for the models in the device table.'
      : 'The devices name it otherwise, or send it no more, probably after an update.'
  const unread =
    key === null || isKeyRead ? '' : ` Nothing reads ${quote(key, 64)}, which is in their messages.`
  const kept = isKept
    ? ' Messages without it are sent, and kept as dead letters with the reason FIELD_LOST.'
    : ' It cannot be sent later by itself, so nothing is kept.'
  return cause + unread + kept
}

const lostActWithoutKept =
  'Correct the path of the field in `map` of the source (`map --explain` shows what a message has) and reload: ' +
  'messages have it from then on. Those that came without it stay without it. Where the devices do without the field, ' +
  'remove it from `map`.'

function fieldText(field: string): string {
  if (field === 'position') return 'positions'
  if (field === 'time') return 'their own times'
  return field.startsWith('signal ') ? `the ${field}` : field
}
