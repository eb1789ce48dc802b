// json-formats.ts: how devices and gateways of several makes write a reading as JSON: with values that no
// mapping uses, without the values that the maker omits, and with the maker's rounding.

import type { Reading } from '../vehicle.ts'

type JsonFormat = { topic: (reading: Reading) => string; message: (reading: Reading) => object }

/** One entry for each preset of the same name. */
export const jsonFormats = {
  'teltonika-json': {
    topic: ({ device }) => `teltonika/${device}/data`,
    message: (reading) => ({
      state: {
        reported: {
          ts: reading.at,
          pr: 0,
          latlng: `${reading.latitude.toFixed(6)},${reading.longitude.toFixed(6)}`,
          alt: Math.round(reading.altitudeM),
          ang: Math.round(reading.headingDeg) % 360,
          sat: reading.satellites,
          sp: Math.round(reading.speedKmh),
          evt: 0,
          '239': 1,
          '240': Number(reading.moving),
          // As truck units number them: total odometer, engine hours, fuel level.
          '216': Math.round(reading.odometerKm * 1000),
          '104': Math.floor(reading.engineHours),
          '87': Math.round(reading.fuelPercent),
          '66': Math.round(reading.supplyVolts * 1000),
        },
      },
    }),
  },
  'ruptela-json': {
    topic: ({ device }) => `ruptela/${device}/data`,
    message: (reading) => ({
      ts: seconds(reading),
      trigger: 7,
      prio: 0,
      imei: reading.device,
      ext: 0,
      pos: {
        lat: Math.round(reading.latitude * 1e7),
        lon: Math.round(reading.longitude * 1e7),
        alt: Math.round(reading.altitudeM),
        dir: Math.round(reading.headingDeg * 100) % 36_000,
        spd: Math.round(reading.speedKmh),
        sat: reading.satellites,
        hdop: 1,
      },
      data: {
        '251': '1',
        '173': reading.moving ? '1' : '0',
        '645': String(Math.floor(reading.odometerKm)),
      },
    }),
  },
  flespi: {
    topic: ({ device }) => `flespi/message/gw/devices/${device}`,
    message: (reading) => ({
      ident: reading.device,
      timestamp: reading.at / 1000,
      'server.timestamp': reading.at / 1000,
      'position.latitude': reading.latitude,
      'position.longitude': reading.longitude,
      'position.altitude': reading.altitudeM,
      'position.speed': reading.speedKmh,
      'position.direction': reading.headingDeg,
      'position.satellites': reading.satellites,
      'position.valid': true,
      'movement.status': reading.moving,
      'engine.ignition.status': true,
      'can.vehicle.mileage': reading.odometerKm,
      'can.engine.motorhours': reading.engineHours,
      'can.fuel.level': reading.fuelPercent,
      'external.powersource.voltage': reading.supplyVolts,
    }),
  },
  'traccar-forward': {
    topic: () => 'positions',
    message: (reading) => ({
      position: {
        id: reading.sequence,
        protocol: 'simulated',
        serverTime: isoTime(reading),
        deviceTime: isoTime(reading),
        fixTime: isoTime(reading),
        valid: true,
        latitude: reading.latitude,
        longitude: reading.longitude,
        altitude: reading.altitudeM,
        speed: reading.speedKmh / 1.852,
        course: reading.headingDeg,
        attributes: {
          sat: reading.satellites,
          ignition: true,
          motion: reading.moving,
          obdOdometer: Math.round(reading.odometerKm * 1000),
          hours: Math.round(reading.engineHours * 3_600_000),
          power: reading.supplyVolts,
        },
      },
      device: { uniqueId: reading.device, name: reading.device, status: 'online' },
    }),
  },
  owntracks: {
    topic: ({ device }) => `owntracks/fleet/${device}`,
    // Zero values are omitted.
    message: (reading) => ({
      _type: 'location',
      tid: reading.device.slice(-2),
      tst: seconds(reading),
      lat: reading.latitude,
      lon: reading.longitude,
      alt: Math.round(reading.altitudeM),
      acc: 5,
      ...(Math.round(reading.speedKmh) > 0 && { vel: Math.round(reading.speedKmh) }),
      ...(Math.round(reading.headingDeg) > 0 && { cog: Math.round(reading.headingDeg) }),
      motion: reading.moving,
      odometer: reading.odometerKm,
      hmc: Math.round(reading.engineHours * 3600),
      t: 'p',
    }),
  },
} satisfies Record<string, JsonFormat>

function seconds({ at }: Reading): number {
  return Math.floor(at / 1000)
}

function isoTime({ at }: Reading): string {
  return new Date(at).toISOString().replace('Z', '+00:00')
}
