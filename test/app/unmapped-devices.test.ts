import { describe, expect, test } from 'vitest'
import { createUnmappedDevices } from '../../src/app/device-monitor/unmapped-devices.ts'
import type { Loss, Standing } from '../../src/device-records/device-records.ts'
import type { State } from '../../src/domain/condition-state.ts'

type Truck = {
  device: string
  kind?: Loss['kind']
  isListed?: boolean
  mappedAt?: number | null
  gapMs?: number
  reason?: string
  isSilent?: boolean
}

function world() {
  let now = 1_760_000_000_000
  const unmapped = createUnmappedDevices({ now: () => now })
  let states: readonly State[] = []
  return {
    look(trucks: readonly Truck[], afterMs = 10_000) {
      now += afterMs
      unmapped.begin()
      for (const {
        device,
        kind,
        reason = 'BAD_TIME',
        isListed = true,
        mappedAt = now - 3_600_000,
        gapMs,
        isSilent = false,
      } of trucks) {
        const loss = kind && {
          kind,
          source: 'trucks',
          reason,
          count: 9,
          firstAt: now,
          lastAt: now,
        }
        const rhythm = { medianGapMs: gapMs ?? null, isSilent }
        const standing = { device, ...rhythm, isListed, lastMappedAt: mappedAt, loss: loss ?? null }
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

  test('is named with all reasons that there are', () => {
    const { look, states } = world()
    const reasons = ['BAD_TIME', 'NO_SOURCE', 'PAST', 'UNKNOWN_DEVICE']
    look(reasons.map((reason) => ({ device: reason, kind: 'dead', reason })))
    expect(states()[0]).toMatchObject({ reasons: expect.stringContaining('UNKNOWN_DEVICE') })
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

  test('is told of no more soon after it was mended, or fell silent, and what is said is of those that are left', () => {
    const { look, states } = world()
    const of = (...trucks: Truck[]) => [...fleet().slice(trucks.length), ...trucks]
    const bad = { kind: 'dead', gapMs: 2000 } as const
    look(of({ device: 'mended', ...bad }, { device: 'gone', ...bad }, { device: 'bad', ...bad }))
    expect(states()).toMatchObject([
      { devices: 3, example: 'mended', reasons: '3 devices: dead letters, trucks: BAD_TIME' },
    ])
    const left = of(
      { device: 'mended', gapMs: 2000 },
      { device: 'gone', ...bad, isSilent: true },
      { device: 'bad', ...bad },
    )
    look(left, 20_000)
    expect(states()).toMatchObject([
      {
        devices: 2,
        sending: 19,
        named: ['mended', 'bad'],
        reasons: '2 devices: dead letters, trucks: BAD_TIME',
      },
    ])
    look(left, 50_000)
    expect(states()).toMatchObject([
      { devices: 1, example: 'bad', named: ['bad'], reasons: '1 device: dead letters, trucks: BAD_TIME' },
    ])
  })
})
