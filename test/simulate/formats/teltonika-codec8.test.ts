import { expect, test } from 'vitest'
import { decodeTeltonika } from '../../../src/mapping/encodings/teltonika.ts'
import { publicationOf } from '../../../src/simulate/formats/formats.ts'
import { createVehicle } from '../../../src/simulate/vehicle.ts'
import { seededRandom } from '../../../src/simulate/seeded-random.ts'

test('the decoder reads back the frames of a simulated truck unit', () => {
  const startAt = 1_767_085_200_000
  const vehicle = createVehicle(seededRandom(3), { device: '864636060000001', startAt })
  for (let minute = 1; minute < 200; minute += 1) {
    const reading = vehicle.drive(startAt + minute * 60_000)
    const { topic, bytes } = publicationOf('teltonika-codec8', reading)
    expect(topic).toBe('teltonika/864636060000001/raw')
    expect(decodeTeltonika(bytes)).toMatchObject({
      value: {
        codec: 0x8e,
        records: [
          {
            ts: reading.at,
            latitude: reading.latitude,
            longitude: reading.longitude,
            satellites: reading.satellites,
            speed: Math.round(reading.speedKmh),
            io: {
              104: Math.floor(reading.engineHours),
              216: Math.round(reading.odometerKm * 1000),
              240: Number(reading.moving),
            },
          },
        ],
      },
    })
  }
})
