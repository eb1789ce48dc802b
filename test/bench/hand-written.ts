// hand-written.ts: the mapping of config/examples/gateway.yaml as a person would write it for this one format, to see
// what declaring it costs. It gives the same payloads, byte for byte.

import type { PayloadId } from '../../src/domain/ids.ts'
import type { Message } from '../../src/domain/message.ts'
import {
  digestOf,
  payloadIdOf,
  signalIdHeadOf,
  signalIdTail,
  windowKeyOf,
} from '../../src/mapping/identity.ts'

type Truck = {
  ts: number
  gps: { lat: number; lon: number; speed: number; heading: number; moving: boolean }
  odometer: { value: number }
  engineHours: { value: number }
}

export function mapByHand({ topic, bytes }: Message): {
  payloadId: PayloadId
  windowKey: string
  json: string
} {
  const device = topic.slice(topic.lastIndexOf('/') + 1)
  const { ts, gps: place, odometer, engineHours } = JSON.parse(bytes.toString()) as Truck
  const { lat: latitude, lon: longitude, speed, heading, moving } = place
  if (!Number.isSafeInteger(ts) || ts < 0) throw new Error('bad time')
  if (!(Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180)) throw new Error('bad position')
  if (!(speed >= 0) || !(heading >= 0 && heading < 360)) throw new Error('bad speed or heading')
  const gps = { latitude, longitude, speed, speedUnits: 'KILOMETERS_PER_HOUR', heading, inMotion: moving }
  const signals = [
    { type: 'OBD_LIFETIME_ODOMETER', value: String(odometer.value), valueUnit: 'KILOMETERS' },
    {
      type: 'OBD_TOTAL_ENGINE_TIME',
      value: String(engineHours.value),
      valueUnit: 'HOURS',
      assetPart: 'ENGINE',
    },
  ]
  let name = `${JSON.stringify(['default', device, ts])},"gps":${JSON.stringify(gps)}`
  for (const signal of signals) name += `",${JSON.stringify(signal).slice(1)}`
  const digest = digestOf(name)
  const payloadId = payloadIdOf(digest)
  const idHead = signalIdHeadOf(digest)
  const json = JSON.stringify({
    payloadId,
    carrier: 'ACME',
    signalTimestamp: ts,
    assetIdentifier: { id: device, type: 'TRACTOR', operator: 'OP1' },
    deviceIdentifier: { id: device },
    gps,
    signals: signals.map((signal, index) => ({ id: idHead + signalIdTail(index), ...signal })),
  })
  return { payloadId, windowKey: windowKeyOf(digest), json }
}
