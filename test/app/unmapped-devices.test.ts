import { describe, expect, test } from 'vitest'
import { createUnmappedDevices } from '../../src/app/device-monitor/unmapped-devices.ts'
import type { Loss, Standing } from '../../src/device-records/device-records.ts'
import type { State } from '../../src/domain/condition-state.ts'

type Truck = { device: string; kind?: Loss['kind']; isListed?: boolean; mappedAt?: number | null }

function world() {
  let now = 1_760_000_000_000
  const unmapped = createUnmappedDevices({ now: () => now })
  let states: readonly State[] = []
  return {
    look(trucks: readonly Truck[], afterMs = 10_000) {
      now += afterMs
      unmapped.begin()
      for (const { device, kind, isListed = true, mappedAt = now - 3_600_000 } of trucks) {
        const loss = kind && {
          kind,
          source: 'trucks',
          reason: 'BAD_TIME',
          count: 9,
          firstAt: now,
          lastAt: now,
        }
        const standing = { device, isSilent: false, isListed, lastMappedAt: mappedAt, loss: loss ?? null }
        unmapped.add(standing as Standing)
      }
      states = unmapped.states()
    },
    states: () => states,
  }
}

const fleet = (kind?: Loss['kind']): Truck[] =>
  Array.from({ length: 20 }, (_, n) => ({
    device: `truck-${n}`,
    ...(n === 0 && kind !== undefined && { kind }),
  }))

describe('a device whose messages give no payload', () => {
  test.each(['dead', 'quarantined'] as const)('is named where they are kept: %s', (kind) => {
    const { look, states } = world()
    look(fleet(kind))
    expect(states()).toMatchObject([{ devices: 1, sending: 20, named: ['truck-0'], isMany: false }])
  })

  test('is no problem where the mapping ignores them, however many there are', () => {
    const { look, states } = world()
    look(fleet().map((truck) => ({ ...truck, kind: 'ignored' as const })))
    expect(states()).toMatchObject([{ devices: 20, named: [], isMany: false }])
  })

  test('is not named where it is a stranger that was never mapped', () => {
    const { look, states } = world()
    look([...fleet(), { device: 'stranger', kind: 'dead', isListed: false, mappedAt: null }])
    expect(states()).toMatchObject([{ devices: 1, named: [] }])
  })

  test('stays named for ten minutes where it sends good messages between bad ones', () => {
    const { look, states } = world()
    for (let round = 0; round < 10; round += 1) {
      look(fleet(round % 2 === 0 ? 'dead' : undefined))
      expect(states()).toMatchObject([{ devices: 1, named: ['truck-0'] }])
    }
    look(fleet(), 700_000)
    expect(states()).toEqual([])
  })
})
