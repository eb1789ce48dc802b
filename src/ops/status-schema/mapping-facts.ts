// mapping-facts.ts: the facts of the mapping, of devices, and of the time.

import { deviceStateNames, deviceStates, stateKey, type StateNumbers } from '../../domain/device-state.ts'
import {
  count,
  fact,
  flag,
  group,
  list,
  offsetOrNull,
  text,
  textOrNull,
  timeOrNull,
  wordOrNull,
} from './fact.ts'
import { listMax, type Seen } from './seen.ts'
import { timeOrNull as isoTimeOrNull } from './value-types.ts'

const withheld = {
  source: text('The source.'),
  field: text('The field or signal type.'),
  reason: text('Why.'),
  values: count('Values since `since`.'),
}

export const mapping = group('The mapping in force, and what it left out.', (seen: Seen) => seen.mapping, {
  since: timeOrNull(
    'When the mapping was put in force: the start or the last reload.',
    'gateway_mapping_timestamp_seconds',
  ),
  sources: count('Sources in it.'),
  omitted: list(
    'Values left out of payloads. At most 200.',
    ({ omitted }) => omitted.slice(0, listMax),
    withheld,
  ),
  flagged: list(
    'Values that were sent although they are not plausible. At most 200.',
    ({ flagged }) => flagged.slice(0, listMax),
    withheld,
  ),
  clocks: group('Verdicts about device times since `since`.', ({ clocks }) => clocks, {
    future: count('Device times in the future.'),
    unset: count('Device times of a clock that was never set.'),
    old: count('Device times older than the source allows.'),
    restamped: count('Device times replaced by the time of arrival.'),
  }),
})

const states = deviceStateNames.map((state) => [
  stateKey(state),
  count(deviceStates[state].meaning, `gateway_devices_${state}`, (seen: Seen) => seen.devices?.states[state]),
])

export const devices = group('Devices, as they are now. /devices lists them.', (seen: Seen) => seen, {
  known: count(
    'Devices with a record: listed, seen or refused.',
    'gateway_device_records',
    (seen) => seen.devices?.devices,
  ),
  listed: count('Rows of the device table.', 'gateway_devices_listed', (seen) => seen.devices?.listed),
  seen: count('Devices of which a message is known.', null, (seen) => seen.devices?.seen),
  ...(Object.fromEntries(states) as { [Key in keyof StateNumbers]: ReturnType<typeof count<Seen>> }),
  total: count(
    'Devices that are listed, were seen or were refused, and clients of no device.',
    null,
    (seen) => seen.devices?.total,
  ),
  checkedAt: timeOrNull('When the devices were last counted.', null, (seen) => seen.devices?.checkedAt, {
    isOurs: true,
  }),
  skewed: list('The worst clocks.', (seen) => seen.mapping?.skewed, {
    device: text('Its key.'),
    assetId: textOrNull('Its asset; null where the device table does not have it.'),
    listed: flag('Whether it is in the device table.'),
    messages: count('Messages of it, since it is known.'),
    lastSeen: fact(isoTimeOrNull().describe('When its last message came.')),
    skewMs: offsetOrNull('Arrival minus device time, in the middle: below zero its clock is ahead.'),
  }),
})

export const clock = group('The time of the gateway.', ({ stages }: Seen) => stages.ourTime?.view(), {
  known: flag(
    'Whether the time of the gateway is known. Until then device times are not judged.',
    'gateway_clock_known',
    ({ by }) => by !== null,
  ),
  by: wordOrNull('By what: the operating system, `clocks.trust_local`, the devices, or the service.', [
    'kernel',
    'config',
    'devices',
    'service',
  ]),
  offsetMs: offsetOrNull('True time minus the clock of this machine.'),
  isDisputed: flag('The clock of this machine counts as right, and the service says otherwise.'),
})
