// device-metrics.ts: the metrics of the device records. See metrics-catalogue.ts. No metric has a device as a
// label: a person asks /devices about one.

import { counter, deviceRecords, gauge, type Metric } from './metric-readings.ts'

export const deviceMetrics: readonly Metric[] = [
  gauge('gateway_device_records', 'Devices whose record is kept.', deviceRecords('devices')),
  gauge('gateway_devices_listed', 'Rows of the device table.', deviceRecords('listed')),
  gauge(
    'gateway_devices_silent',
    'Devices that are silent against their own rhythm.',
    deviceRecords('silent'),
  ),
  gauge(
    'gateway_devices_never_sent',
    'Rows of the device table, and connected clients, of which no message is known.',
    deviceRecords('neverSent'),
  ),
  gauge(
    'gateway_devices_refused',
    'Devices whose last CONNECT was refused, or whose messages a rule refuses.',
    deviceRecords('refused'),
  ),
  gauge(
    'gateway_devices_repeating',
    'Devices that send, and bring nothing new: each message is a duplicate.',
    deviceRecords('repeating'),
  ),
  gauge(
    'gateway_devices_not_mapped',
    'Devices whose last message gave no payload, and clients whose messages name no device.',
    deviceRecords('notMapped'),
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
