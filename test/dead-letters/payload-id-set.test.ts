import { describe, expect, test } from 'vitest'
import { createPayloadIdSet } from '../../src/dead-letters/payload-id-set.ts'
import { uuidNamed } from '../support/ledger-world.ts'

describe('the set of payloadIds', () => {
  test('numbers ids in order of addition, and finds them while it grows', () => {
    const set = createPayloadIdSet()
    const ids = Array.from({ length: 20_000 }, (_, n) => uuidNamed(`${n}`))
    expect(ids.map((id) => set.add(id))).toEqual(ids.map((_, n) => n))
    expect(ids.map((id) => set.add(id))).toEqual(ids.map((_, n) => n))
    expect(ids.map((id) => set.numberOf(id))).toEqual(ids.map((_, n) => n))
    expect(set.size).toBe(20_000)
    expect(set.numberOf(uuidNamed('another'))).toBe(-1)
  })

  test('distinguishes ids that differ in one digit, wherever it is', () => {
    const set = createPayloadIdSet()
    const first = '00000000-0000-4000-8000-000000000000'
    const others = first
      .split('')
      .flatMap((digit, at) =>
        digit === '-' ? [] : [`${first.slice(0, at)}${digit === '0' ? 'f' : '0'}${first.slice(at + 1)}`],
      )
    set.add(first)
    expect(others.map((id) => set.add(id))).toEqual(others.map((_, n) => n + 1))
  })

  test('takes ids that count upwards in a few steps each', () => {
    const set = createPayloadIdSet()
    for (let n = 0; n < 200_000; n += 1)
      set.add(`00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`)
    expect(set.size).toBe(200_000)
    expect(set.numberOf('00000000-0000-4000-8000-00000000ffff')).toBe(0xffff)
  })
})
