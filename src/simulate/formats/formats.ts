// formats.ts: how a device writes a reading. One entry per kind of device; `simulate --format NAME` selects
// one. All but the first have the name of the preset that reads them.

import { jsonFormats } from './json-formats.ts'
import { teltonikaFrame } from './teltonika-codec8.ts'
import type { Reading } from '../vehicle.ts'

export type Publication = { topic: string; bytes: Buffer }

type Format = (reading: Reading) => Publication

/**
 * The shape that the example mapping of the README reads. It also has values that no mapping uses (fuel,
 * supply, network), as real devices do, and about 320 bytes.
 */
const telemetryV1: Format = (reading) => {
  const message = {
    device: reading.device,
    seq: reading.sequence,
    ts: reading.at,
    gps: {
      lat: reading.latitude,
      lon: reading.longitude,
      alt: reading.altitudeM,
      speed: reading.speedKmh,
      heading: reading.headingDeg,
      moving: reading.moving,
      satellites: reading.satellites,
    },
    odometer: { value: reading.odometerKm, unit: 'km' },
    engineHours: { value: reading.engineHours, unit: 'h' },
    fuel: { level: reading.fuelPercent, unit: '%' },
    power: { supply: reading.supplyVolts },
  }
  return { topic: `telemetry/v1/${reading.device}`, bytes: Buffer.from(JSON.stringify(message)) }
}

const teltonikaCodec8: Format = (reading) => ({
  topic: `teltonika/${reading.device}/raw`,
  bytes: teltonikaFrame(reading),
})

const formats = {
  'telemetry-v1': telemetryV1,
  'teltonika-codec8': teltonikaCodec8,
  'teltonika-json': inJson('teltonika-json'),
  'ruptela-json': inJson('ruptela-json'),
  flespi: inJson('flespi'),
  'traccar-forward': inJson('traccar-forward'),
  owntracks: inJson('owntracks'),
} satisfies Record<string, Format>

export type FormatName = keyof typeof formats

export const formatNames = Object.keys(formats) as FormatName[]

/** Writes `reading` as a device of this kind does. */
export function publicationOf(format: FormatName, reading: Reading): Publication {
  return formats[format](reading)
}

function inJson(name: keyof typeof jsonFormats): Format {
  const { topic, message } = jsonFormats[name]
  return (reading) => ({ topic: topic(reading), bytes: Buffer.from(JSON.stringify(message(reading))) })
}
