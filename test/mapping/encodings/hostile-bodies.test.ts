// No bytes make an encoding throw, and each reads hostile messages. More of them are in hostile-bodies.slow.test.ts.

import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { usualLimits } from '../../../src/mapping/body/body-limits.ts'
import { encodingNames, encodingOf, type EncodingName } from '../../../src/mapping/encodings/encodings.ts'
import type { StatefulDecoded } from '../../../src/mapping/types.ts'
import { tcpFrame } from '../../support/teltonika-frame.ts'
import { testHostileBodies, units } from './hostile-bodies.ts'

testHostileBodies(30)

function decoderOf(name: EncodingName): (message: Buffer) => StatefulDecoded {
  const encoding = encodingOf(name, { compression: 'gzip', charset: undefined, limits: usualLimits })
  if (encoding.decode !== undefined) return (message) => encoding.decode(message)
  const { forTopic } = encoding.createDecoder({ source: 'one' })
  return (message) => forTopic('spBv1.0/fleet/NBIRTH/node')(message, 0, true)
}

describe('any bytes', () => {
  const noise = fc.uint8Array({ maxLength: 120 }).map((array) => Buffer.from(array))
  const starts = ['', '00000000', '08', '8e', '10', '0c', '02', '0201', '1f8b08', '2447', '7b22'].map((hex) =>
    Buffer.from(hex, 'hex'),
  )
  const started = fc.tuple(fc.constantFrom(...starts), noise).map((parts) => Buffer.concat(parts))
  const text = fc
    .string({
      unit: fc.constantFrom(
        ...units.map((unit) => unit.toString('latin1')),
        'GPRMC',
        'GPGGA',
        'GPVTG',
        'A',
        'T',
        'N',
        '0',
        '.',
        '-',
        ':',
        'nan',
      ),
    })
    .map((characters) => Buffer.from(characters, 'latin1'))
  /** Such as a decoder reads on behind its checks. */
  const sealed = started.map((bytes) => [
    tcpFrame(bytes),
    Buffer.concat([bytes, Buffer.from([sumOf(bytes)])]),
  ])

  test.each(encodingNames)('get a result of the encoding %s, and no exception', (name) => {
    const decode = decoderOf(name)
    fc.assert(
      fc.property(fc.oneof(noise, started, text), sealed, (bytes, others) => {
        for (const each of [bytes, ...others])
          expect(['value', 'empty', 'ignored', 'refused']).toContain(decode(each).kind)
      }),
      { numRuns: 2000 },
    )
  })
})

function sumOf(bytes: Buffer): number {
  return bytes.reduce((total, byte) => (total + byte) & 0xff, 0)
}
