// device-metrics.ts: the metrics of the device records. See metrics-catalogue.ts. No metric has a device as a
// label: a person asks /devices about one.

import { deviceStateNames, deviceStates } from '../../domain/device-state.ts'
import { counter, deviceRecords, gauge, one, type Metric } from './metric-readings.ts'

export const deviceMetrics: readonly Metric[] = [
  gauge('gateway_device_records', 'Devices whose record is kept.', deviceRecords('devices')),
  gauge('gateway_devices_listed', 'Rows of the device table.', deviceRecords('listed')),
  ...deviceStateNames.map((state) =>
    gauge(`gateway_devices_${state}`, deviceStates[state].meaning, ({ stages }) =>
      one(stages.mapping?.deviceTotals().states[state]),
    ),
  ),
  gauge(
    'gateway_device_records_waiting',
    'Records that changed and are not on the disk.',
    deviceRecords('waiting'),
  ),
  counter(
    'gateway_device_records_evicted_total',
    'Records of quiet devices removed at ops.devices.max.',
    deviceRecords('evicted'),
  ),
  counter(
    'gateway_devices_not_recorded_total',
    'Messages of devices without a record, because ops.devices.max others have one.',
    deviceRecords('notRecorded'),
  ),
  counter(
    'gateway_device_records_expired_total',
    'Records removed at ops.devices.retention.',
    deviceRecords('expired'),
  ),
  gauge(
    'gateway_device_message_bytes',
    'Memory for the last messages of devices.',
    deviceRecords('ringBytes'),
  ),
  counter(
    'gateway_device_messages_not_kept_total',
    'Messages that `devices show` does not have: messages_max_bytes is reached, or 5000 came in a second.',
    deviceRecords('notKept'),
  ),
  counter(
    'gateway_device_records_unreadable_total',
    'Stored records that cannot be read.',
    deviceRecords('unreadable'),
  ),
]
