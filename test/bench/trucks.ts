// trucks.ts: the source of config/examples/gateway.yaml, and messages for it.

import { mappingSchema } from '../../src/config/sources-section.ts'
import type { Message } from '../../src/domain/message.ts'
import { openMapper, type Mapper } from '../../src/mapping/mapping.ts'
import { rounded } from './bench.ts'

export function openTrucks(): Promise<Mapper> {
  const config = mappingSchema.parse({
    sources: [
      {
        name: 'trucks',
        topic: 'telemetry/v1/{device}',
        map: {
          time: { path: 'ts', format: 'ms' },
          latitude: { path: 'gps.lat' },
          longitude: { path: 'gps.lon' },
          speed: { path: 'gps.speed', unit: 'km/h' },
          heading: { path: 'gps.heading' },
          in_motion: { path: 'gps.moving' },
          signals: [
            { type: 'OBD_LIFETIME_ODOMETER', path: 'odometer.value', unit: 'km' },
            { type: 'OBD_TOTAL_ENGINE_TIME', path: 'engineHours.value', unit: 'h', part: 'ENGINE' },
          ],
        },
      },
    ],
    devices: { unknown: 'accept' },
    defaults: { carrier: 'ACME', operator: 'OP1', asset_type: 'TRACTOR' },
  })
  return openMapper(config, { clockOffsetMs: () => 0 })
}

/** What a message has besides what the source reads. */
type More = Readonly<Record<string, unknown>>

/** No two are alike; they differ from those of another stretch, too. */
export function truckMessages(count: number, from = 0, devices = 500, more: More = {}): Message[] {
  const sender = { clientId: 'bench', userName: null, certificateName: null, identity: null }
  const arrivedAt = Date.UTC(2026, 1, 1)
  return Array.from({ length: count }, (_, at) => {
    const index = from + at
    const text = JSON.stringify({
      ts: arrivedAt - 1_000_000 + index,
      gps: {
        lat: rounded(48 + (index % 9973) / 1e5, 5),
        lon: rounded(9 + (index % 7919) / 1e5, 5),
        speed: index % 90,
        heading: index % 360,
        moving: index % 90 > 5,
      },
      odometer: { value: rounded(90_000 + index / 1e5, 5), unit: 'km' },
      engineHours: { value: rounded(2200 + index / 3.6e6, 6), unit: 'h' },
      ...more,
    })
    const topic = `telemetry/v1/truck-${index % devices}`
    return { topic, bytes: Buffer.from(text), qos: 1, retain: false, dup: false, sender, arrivedAt }
  })
}

export function timeOf(run: () => void): number {
  const startedMs = performance.now()
  run()
  return performance.now() - startedMs
}
