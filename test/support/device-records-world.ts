// device-records-world.ts: the records of devices with no disk, and what the mapping and the broker know of a device.

import { createDeviceRecords, type RecordsStore } from '../../src/device-records/device-records.ts'
import { defaultProvider } from '../../src/domain/ids.ts'
import type { ClientView } from '../../src/ingest/ingest.ts'
import type { NotedDevice } from '../../src/mapping/mapping.ts'
import type { Clock } from '../../src/std/clock.ts'
import { testBootId } from './our-time.ts'

export function deviceRecords(
  clock: Clock,
  { devicesMax = 5000, store }: { devicesMax?: number; store?: RecordsStore } = {},
) {
  return createDeviceRecords(
    {
      clock,
      store: store ?? { use: async () => null },
      providers: [defaultProvider],
      withheldOf: () => [],
      knownTime: () => clock.now(),
      isTimeKnown: () => true,
      bootId: testBootId,
      isDiskLow: () => false,
    },
    {
      devicesMax,
      messagesBytesMax: 1024 ** 2,
      retentionMs: 90 * 86_400_000,
      everyMs: 10_000,
      recordsPerRound: 500,
      newPerRound: 2000,
      roundsToWait: 6,
    },
  )
}

/** Gives the entry of a device: the same one for the same name. */
export function notedDevices(): (device: string, more?: Partial<NotedDevice>) => NotedDevice {
  const entries = new Map<string, NotedDevice>()
  return (device, more = {}) => {
    const known = entries.get(device)
    if (known !== undefined) return known
    const entry: NotedDevice = {
      device,
      provider: defaultProvider,
      assetId: device,
      listed: false,
      source: 'trucks',
      withhold: null,
      note: null,
      ...more,
    }
    entries.set(device, entry)
    return entry
  }
}

export function clientView(clientId: string, more: Partial<ClientView> = {}): ClientView {
  return {
    clientId,
    identity: null,
    userName: null,
    address: '10.0.0.7',
    protocol: 'MQTT 3.1.1',
    connect: null,
    certificate: null,
    state: 'connected',
    since: 1,
    willCame: false,
    takeOvers: 0,
    sharedAt: null,
    sharedFirstAt: null,
    refusedMessages: 0,
    messageRefusedFirstAt: null,
    messageRefusedAt: null,
    refusedFirstAt: null,
    refusedAt: null,
    fault: null,
    traffic: { messages: 0, subscriptions: 0 },
    unnamed: null,
    ...more,
  }
}
