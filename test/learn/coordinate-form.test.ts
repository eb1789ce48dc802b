import { describe, expect, test } from 'vitest'
import { coordinateForm } from '../../src/learn/source-draft.ts'

describe('the numbers of a position', () => {
  test.each<[string, unknown[], unknown[], object]>([
    ['degrees', [48.1, '-33.9'], [2.2, 18.4], { kind: 'degrees', options: {} }],
    ['degrees with a wrong one', [48.1, 95, 48.2], [2.2, 2.2, 2.2], { kind: 'degrees' }],
    ['ten-millionths', [481_170_000], [22_000_000], { kind: 'scaled', options: { unit: '1e-7deg' } }],
    ['ten-millionths near the equator', [4_811_700], [1_039_000_000], { options: { unit: '1e-7deg' } }],
    ['millionths', [48_117_000], [2_200_000], { options: { scale: 0.000001 } }],
    ['hundred-thousandths', [4_811_700], [220_000], { options: { scale: 0.00001 } }],
    [
      'degrees and minutes',
      [4807.038],
      [1131.0],
      { kind: 'scaled', options: { unit: 'ddmm' }, note: expect.stringContaining('NMEA 0183') },
    ],
    ['degrees and minutes as texts', ['4807.038'], ['01131.000'], { options: { unit: 'ddmm' } }],
    ['other numbers', [4881.7], [1199.9], { kind: 'unusable' }],
    ['small integers', [4000], [5000], { kind: 'unusable' }],
  ])('are %s', (_, latitudes, longitudes, form) => {
    expect(coordinateForm(latitudes, longitudes)).toMatchObject(form)
  })
})
