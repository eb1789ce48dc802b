import { expect, test } from 'vitest'
import { createWrittenBytes, putAgain, putTime } from '../../../src/mapping/fast-path/written-bytes.ts'

test('a time is written as JavaScript writes it, whatever it is', () => {
  const grown = Array.from({ length: 200 }, (_, index) => 1_760_000_000_000 + index * 5_000_000_007)
  const odd = [0, -0, -1, 5, 999_999_999_999, 1e12, 1e12 + 1, 1_000_001_000_000, 9_999_999_999_999, 1e13]
  for (const time of [...grown, ...odd, 1_760_000_000_000.5, 8.64e15, 1e21]) {
    const written = createWrittenBytes(64)
    putTime(written, time)
    expect(written.bytes.toString('latin1', 0, written.at)).toBe(String(time))
  }
})

test('what was written before is written again, however long it is', () => {
  for (const length of [0, 1, 39, 40, 41, 200]) {
    const written = createWrittenBytes(512)
    for (let at = 0; at < length; at += 1) written.bytes[at] = at
    written.at = length + 3
    putAgain(written, 0, length)
    expect(written.at).toBe(2 * length + 3)
    expect(written.bytes.subarray(length + 3, written.at)).toEqual(written.bytes.subarray(0, length))
  }
})
