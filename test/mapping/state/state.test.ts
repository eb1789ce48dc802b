import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { messageOf, payloadsIn, sender, type Sent } from '../../support/mapping-world.ts'
import { openStates, type StateWorld } from '../../support/state-world.ts'

const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odometer', unit: 'km' }

/** One value a topic, without times. */
const vans = {
  name: 'vans',
  topic: 'vans/{device}/{metric}',
  encoding: 'scalar',
  coalesce: { name: '{metric}', require: ['lat', 'lon'] },
  map: { latitude: { path: 'lat' }, longitude: { path: 'lon' }, signals: [odometer] },
}

/** Events with names and times of their own on one topic. */
const events = {
  name: 'events',
  topic: 'events/{device}',
  coalesce: {
    name: { path: 'n' },
    value: 'v',
    time: { path: 't', format: 's-float' },
    require: ['lat', 'lon'],
    pair_within: '1s',
  },
  map: { latitude: { path: 'lat' }, longitude: { path: 'lon' }, signals: [odometer] },
}

/** Two sources of one asset. */
const phones = {
  name: 'phones',
  topic: 'phones/{device}',
  merge: { group: 'assets', window: '10s' },
  map: {
    time: { path: 'ts', format: 'ms', missing: 'arrival' },
    latitude: { path: 'lat' },
    longitude: { path: 'lon' },
    signals: [{ type: 'BATTERY', path: 'battery' }],
  },
}
const boxes = {
  name: 'boxes',
  topic: 'boxes/{device}',
  merge: { group: 'assets', window: '10s' },
  map: {
    time: { path: 'ts', format: 'ms', missing: 'arrival' },
    signals: [odometer, { type: 'BATTERY', path: 'battery' }],
  },
}
const pairs = { table: 'device,asset_id\nphone-1,TRK-1\nbox-1,TRK-1\nphone-2,TRK-2\nbox-2,TRK-2\n' }

type Came = { topic: string; payload: unknown; at: number; dup?: boolean; retain?: boolean }

const start = 1_770_000_000_000

function come(world: StateWorld, { topic, payload, at, dup = false, retain = false }: Came) {
  return world.deliver(messageOf(payload, { topic, arrivedAt: start + at, dup, retain }))
}

function sent({ payloads }: StateWorld): { at: number; device?: string; gps?: object; signals?: string[] }[] {
  return payloads.map(({ json, device }) => {
    const { signalTimestamp, gps, signals } = JSON.parse(json) as Sent
    return {
      at: signalTimestamp - start,
      device,
      ...(gps ? { gps } : {}),
      ...(signals ? { signals: signals.map(({ type, value }) => `${type} ${value}`) } : {}),
    }
  })
}

const position = { latitude: 48.1, longitude: 11.5 }

describe('scalar topics', () => {
  test('become one payload with the arrival time of the last value', () => {
    const world = openStates([vans])
    for (const [at, name, value] of [
      [0, 'lon', 11.5],
      [3, 'odometer', 1653],
      [7, 'lat', 48.1],
    ] as const)
      expect(come(world, { topic: `vans/van-1/${name}`, payload: value, at })).toBe('part')
    expect(world.mapper.nextTickAt()).toBe(start + 500)
    world.tick(start + 500)
    expect(sent(world)).toEqual([
      { at: 7, device: 'van-1', gps: position, signals: ['OBD_LIFETIME_ODOMETER 1653'] },
    ])
    expect(world.closedMessages).toBe(3)
    expect(world.kept.size).toBe(0)
  })

  test('are ignored when the source does not use them or the record is incomplete', () => {
    const world = openStates([vans])
    come(world, { topic: 'vans/van-1/tyre', payload: 2.4, at: 0 })
    come(world, { topic: 'vans/van-1/odometer', payload: 7, at: 0 })
    world.tick(start + 1000)
    expect(world.unsent).toEqual([
      { kind: 'ignored', source: 'vans', reason: 'not wanted', messages: 1 },
      { kind: 'ignored', source: 'vans', reason: 'incomplete', messages: 1 },
    ])
  })

  test('with a wrong position become a dead letter that can be mapped again', () => {
    const world = openStates([vans])
    come(world, { topic: 'vans/van-1/lat', payload: 97, at: 0 })
    come(world, { topic: 'vans/van-1/lon', payload: 11.5, at: 1 })
    world.tick(start + 1000)
    const [letter] = world.unsent
    expect(letter).toMatchObject({
      kind: 'unmappable',
      source: 'vans',
      device: 'van-1',
      reason: 'OUT_OF_RANGE',
      messages: 2,
    })
    const message = letter?.kind === 'unmappable' ? letter.message : messageOf('')
    expect(world.mapper.map(message)).toMatchObject({ kind: 'unmappable', reason: 'OUT_OF_RANGE' })
    const mended = {
      ...message,
      bytes: Buffer.from(message.bytes.toString().replace('"97"', '"47"')),
    }
    expect(payloadsIn(world.mapper.map(mended)).map(({ json }) => json)).toEqual([
      expect.stringContaining('"latitude":47,"longitude":11.5'),
    ])
  })

  test('with own times are recognised as duplicates without DUP, others only with it', () => {
    const world = openStates([events, vans])
    const event = { topic: 'events/e-1', payload: { n: 'lat', v: 48.1, t: start / 1000 }, at: 0 }
    expect([come(world, event), come(world, { ...event, at: 9 })]).toEqual(['part', 'duplicate'])
    const value = { topic: 'vans/van-1/lat', payload: 48.1, at: 0 }
    expect([come(world, value), come(world, value), come(world, { ...value, dup: true })]).toEqual([
      'part',
      'part',
      'duplicate',
    ])
  })

  test('of more than a minute apart are no pair, halves of a position of more than a second, also without `pair_within`', () => {
    const { pair_within: _within, ...coalesce } = events.coalesce
    const world = openStates([{ ...events, coalesce: { ...coalesce, require: [] } }])
    for (const [n, v, ageSeconds] of [
      ['odometer', 1653, 86_400],
      ['lat', 47.9, 20],
      ['lon', 11.5, 0],
      ['lat', 48.1, 1],
    ])
      come(world, { topic: 'events/e-1', payload: { n, v, t: start / 1000 - Number(ageSeconds) }, at: 0 })
    world.tick(start + 1000)
    expect(sent(world)).toEqual([
      { at: -86_400_000, device: 'e-1', signals: ['OBD_LIFETIME_ODOMETER 1653'] },
      { at: 0, device: 'e-1', gps: position },
    ])
    expect(world.unsent).toMatchObject([{ kind: 'unmappable', reason: 'HALF_POSITION' }])
  })

  test('make no place where the vehicle never was, when one of them is lost', () => {
    const { pair_within: _within, ...coalesce } = events.coalesce
    const world = openStates([
      { ...events, coalesce: { ...coalesce, complete: ['lat', 'lon'], window: '30s' } },
    ])
    for (const [n, v, seconds] of [
      ['lat', 48.1, 0],
      ['lon', 11.5, 0],
      ['lat', 48.2, 20],
      // The longitude of 20 s never comes.
      ['lon', 11.7, 40],
      ['lat', 48.3, 40],
    ])
      come(world, { topic: 'events/e-1', payload: { n, v, t: start / 1000 + Number(seconds) }, at: 0 })
    world.tick(start + 60_000)
    expect(sent(world).map(({ gps }) => gps)).toEqual([
      expect.objectContaining({ latitude: 48.1, longitude: 11.5 }),
      expect.objectContaining({ latitude: 48.3, longitude: 11.7 }),
    ])
  })

  test('of a clock that is ahead are quarantined when the record closes', () => {
    const world = openStates([events])
    for (const [n, v] of [
      ['lat', 48.1],
      ['lon', 11.5],
    ])
      come(world, { topic: 'events/e-1', payload: { n, v, t: (start + 399_000) / 1000 }, at: 0 })
    world.tick(start + 1000)
    expect(world.unsent).toMatchObject([{ kind: 'quarantined', reason: 'FUTURE', messages: 2 }])
    const foreign = messageOf({ owner: 'e-1', arrivedAt: 1, record: {} }, { topic: '$coalesced/events' })
    expect(world.mapper.map(foreign)).toMatchObject({ kind: 'unmappable', reason: 'NO_SOURCE' })
  })

  test('are judged by the time of the close, where our clock was behind at their arrival', () => {
    const hourMs = 3_600_000
    const arrival = (offsetMs: number | null) => ({ bootId: 'b', monotonicMs: 0, offsetMs })
    for (const [aheadMs, reasons] of [
      [hourMs, []],
      [2 * hourMs, ['FUTURE']],
    ] as const) {
      const world = openStates([events])
      for (const [n, v] of [
        ['lat', 48.1],
        ['lon', 11.5],
      ]) {
        const payload = { n, v, t: (start + aheadMs) / 1000 }
        const message = messageOf(payload, { topic: 'events/e-1', arrivedAt: start })
        world.deliver({ ...message, arrival: arrival(null) })
      }
      // Our time becomes known: the next message has the corrected time of arrival.
      const next = { n: 'lat', v: 1, t: (start + hourMs) / 1000 }
      const later = messageOf(next, { topic: 'events/e-2', arrivedAt: start + hourMs })
      world.deliver({ ...later, arrival: arrival(0) })
      world.tick(start + hourMs + 1)
      expect(world.unsent.map(({ reason }) => reason)).toEqual(reasons)
    }
  })

  test('are used when a condition reads them', () => {
    const fix = { valid: 'lock == "yes" || has(record["gps/lock"])' }
    const world = openStates([{ ...vans, when: 'on != "no"', fix }])
    for (const name of ['lock', 'on', 'yes', '$time'])
      come(world, { topic: `vans/van-1/${name}`, payload: 'yes', at: 0 })
    expect(world.unsent).toHaveLength(2)
    for (const name of ['lat', 'lon']) come(world, { topic: `vans/van-1/${name}`, payload: 5, at: 1 })
    world.tick(start + 1000)
    expect(sent(world)).toMatchObject([{ gps: { latitude: 5 } }])
  })

  test('of a device that was removed from the table are quarantined, and sent when it is listed again', () => {
    const listed = { devices: { unknown: 'quarantine' }, table: 'device\nvan-1\n' }
    const world = openStates([vans], listed)
    for (const name of ['lat', 'lon']) come(world, { topic: `vans/van-1/${name}`, payload: 5, at: 1 })
    const without = openStates([vans], { ...listed, table: 'device\nvan-2\n' })
    for (const [key, value] of world.kept) without.kept.set(key, value)
    without.restart()
    without.tick(start + 1000)
    const [letter] = without.unsent
    const fate = { kind: 'quarantined', reason: 'UNKNOWN_DEVICE', device: 'van-1' }
    expect(letter).toMatchObject({ ...fate, messages: 2 })
    const message = letter?.kind === 'quarantined' ? letter.message : messageOf('')
    expect(without.mapper.map(message)).toMatchObject(fate)
    expect(payloadsIn(world.mapper.map(message))).toHaveLength(1)
  })

  test('of two providers with devices of one name do not mix, also over a restart', () => {
    const world = openStates([{ ...vans, topic: 'vans/{fleet}/{device}/{metric}', provider: '{fleet}' }], {
      providers: ['north', 'south'],
    })
    for (const fleet of ['north', 'south'])
      for (const name of ['lat', 'lon'])
        come(world, { topic: `vans/${fleet}/van-1/${name}`, payload: fleet.length, at: 1 })
    world.restart()
    world.tick(start + 1000)
    expect(world.payloads.map(({ provider, device }) => `${provider} ${device}`)).toEqual([
      'north van-1',
      'south van-1',
    ])
  })

  test('that a broker retained are ignored with `retained: ignore`', () => {
    const world = openStates([{ ...vans, retained: 'ignore' }])
    for (const name of ['lat', 'lon'])
      expect(come(world, { topic: `vans/van-1/${name}`, payload: 1, at: 0, retain: true })).toBe('ignored')
    expect(world.kept.size).toBe(0)
  })
})

describe('state on the disk', () => {
  test('that cannot be read becomes a dead letter with its bytes and is deleted', () => {
    const world = openStates([vans])
    come(world, { topic: 'vans/van-1/lat', payload: 48.1, at: 0 })
    const [key] = world.kept.keys()
    world.kept.set(key ?? '', Buffer.from('rubbish'))
    world.kept.set('sparkplug "x" y', Buffer.from('of somebody else'))
    world.restart()
    expect(world.mapper.counters().state).toMatchObject({ damaged: 1, messages: 0 })
    expect(world.mapper.nextTickAt()).toBe(0)
    world.tick(start)
    expect(world.unsent).toMatchObject([{ kind: 'unmappable', reason: 'DAMAGED_STATE' }])
    expect([...world.kept.keys()]).toEqual(['sparkplug "x" y'])
    expect(world.mapper.nextTickAt()).toBeNull()
  })

  test('that no source uses any more becomes a dead letter that can be mapped when the source is back', () => {
    const world = openStates([vans])
    come(world, { topic: 'vans/van-1/lat', payload: 48.1, at: 0 })
    come(world, { topic: 'vans/van-1/lon', payload: 11.5, at: 1 })
    const later = openStates([events])
    for (const [key, value] of world.kept) later.kept.set(key, value)
    later.restart()
    later.tick(start + 1000)
    expect(later.kept.size).toBe(0)
    const [letter] = later.unsent
    expect(letter).toMatchObject({ kind: 'unmappable', reason: 'NO_SOURCE', source: 'vans', messages: 2 })
    const message = letter?.kind === 'unmappable' ? letter.message : messageOf('')
    expect(world.mapper.map(message)).toMatchObject({ kind: 'payloads', source: 'vans' })
    expect(later.mapper.map(message)).toMatchObject({ kind: 'unmappable', reason: 'NO_SOURCE' })
  })

  test('is kept unchanged by a new mapping', () => {
    const world = openStates([vans, phones, boxes], pairs)
    come(world, { topic: 'vans/van-1/lat', payload: 48.1, at: 0 })
    come(world, { topic: 'phones/phone-1', payload: { lat: 1, lon: 2 }, at: 0 })
    expect(new Map(world.mapper.entries())).toEqual(world.kept)
    expect(world.kept.size).toBe(2)
  })
})

describe('two sources of one asset', () => {
  test('make one payload with the time and device of the position', () => {
    const world = openStates([phones, boxes], pairs)
    come(world, { topic: 'boxes/box-1', payload: { ts: start + 5, odometer: 7, battery: 9 }, at: 10 })
    expect(world.payloads).toEqual([])
    come(world, {
      topic: 'phones/phone-1',
      payload: { ts: start + 700, lat: 48.1, lon: 11.5, battery: 80 },
      at: 720,
    })
    expect(sent(world)).toEqual([
      {
        at: 700,
        device: 'phone-1',
        gps: position,
        signals: ['BATTERY 80', 'OBD_LIFETIME_ODOMETER 7'],
      },
    ])
    expect(world.kept.size).toBe(0)
    expect(world.closedMessages).toBe(2)
  })

  test('make the same payload in any order of the config, which decides only between equal values', () => {
    const world = openStates([boxes, phones], pairs)
    const phone = { ts: start + 700, lat: 48.1, lon: 11.5, battery: 80 }
    come(world, { topic: 'phones/phone-1', payload: phone, at: 0 })
    come(world, { topic: 'boxes/box-1', payload: { ts: start, odometer: 7, battery: 9 }, at: 10 })
    expect(sent(world)).toEqual([
      { at: 700, device: 'phone-1', gps: position, signals: ['OBD_LIFETIME_ODOMETER 7', 'BATTERY 9'] },
    ])
  })

  test('wait no longer than the window, and a source that sends again closes the record', () => {
    const world = openStates([phones, boxes], pairs)
    for (const at of [1500, 1600])
      come(world, { topic: 'phones/phone-2', payload: { lat: 48.1, lon: 11.5, ts: start + at }, at })
    world.tick(start + 20_000)
    expect(sent(world).map(({ at, device }) => `${device} ${at}`)).toEqual(['phone-2 1500', 'phone-2 1600'])
    expect(world.unsent).toEqual([])
  })

  test('with different times make two payloads', () => {
    const world = openStates([phones, boxes], pairs)
    come(world, { topic: 'phones/phone-1', payload: { lat: 1, lon: 2, ts: start }, at: 0 })
    come(world, { topic: 'boxes/box-1', payload: { odometer: 7, ts: start - 10_001 }, at: 1 })
    world.tick(start + 20_000)
    expect(sent(world)).toHaveLength(2)
  })

  test('make one payload when one of them has scalar topics', () => {
    const merged = { ...vans, merge: { group: 'assets', window: '10s' } }
    const world = openStates([merged, boxes], { table: 'device,asset_id\nvan-1,TRK-1\nbox-1,TRK-1\n' })
    come(world, { topic: 'vans/van-1/lat', payload: 48.1, at: 0 })
    come(world, { topic: 'vans/van-1/lon', payload: 11.5, at: 1 })
    world.tick(start + 600)
    expect([...world.kept.keys()]).toEqual(['merge "assets" TRK-1'])
    expect(world.mapper.counters().state.messages).toBe(2)
    world.restart()
    come(world, { topic: 'boxes/box-1', payload: { odometer: 7 }, at: 900 })
    expect(sent(world)).toMatchObject([{ at: 1, device: 'van-1', gps: position }])
    expect(world.closedMessages).toBe(3)
  })
})

describe('thinning and privacy', () => {
  const { merge: _merge, ...plainPhones } = phones
  const thinned = { ...plainPhones, thin: { every: '10s' } }

  test('ignore and count payloads, and change no other payload', () => {
    const world = openStates([thinned])
    const plain = openStates([plainPhones])
    for (const at of [0, 4000, 10_000]) {
      const message = { topic: 'phones/p', payload: { lat: 48.1, lon: 11.5, ts: start + at }, at }
      come(world, message)
      if (at !== 4000) come(plain, message)
    }
    expect(sent(world).map(({ at }) => at)).toEqual([0, 10_000])
    expect(world.payloads[0]).toEqual(plain.payloads[0])
    expect(world.unsent).toEqual([{ kind: 'ignored', source: 'phones', reason: 'thinned', messages: 1 }])
    expect(world.mapper.counters().state.thin.get('phones')).toMatchObject({ passed: 2, thinned: 1 })
  })

  test('do not change the payloadId', () => {
    const message = { topic: 'phones/p', payload: { lat: 48.123, lon: 11.5, ts: start }, at: 0 }
    const profiles = { coarse: { round: 1 }, none: { hours: 'Mon 00:00-00:01', outside: 'drop' } }
    const withProfile = (name: string) =>
      openStates([thinned], { privacy: { profiles }, table: `device,privacy\np,${name}\n` })
    const [open, coarse, dropping] = [openStates([thinned]), withProfile('coarse'), withProfile('none')]
    for (const world of [open, coarse]) come(world, message)
    expect(coarse.payloads[0]?.payloadId).toBe(open.payloads[0]?.payloadId)
    expect(sent(coarse)).toMatchObject([{ gps: { latitude: 48.1, longitude: 11.5 } }])
    expect(come(dropping, message)).toBe('ignored')
    expect(dropping.unsent).toMatchObject([{ reason: 'privacy' }])
  })
})

describe('repeated messages and restarts', () => {
  const value = (
    topic: (device: string, name: string) => string,
    payload: (name: string, v: number, t: number) => unknown,
  ) =>
    fc
      .record({
        device: fc.constantFrom('1', '2'),
        name: fc.constantFrom('lat', 'lon', 'odometer', 'noise'),
        v: fc.integer({ min: -80, max: 80 }),
        t: fc.integer({ min: 0, max: 3000 }),
        after: fc.integer({ min: 0, max: 400 }),
      })
      .map(({ device, name, v, t, after }) => ({
        topic: topic(device, name),
        payload: payload(name, v, t),
        after,
      }))

  const vanValue = value(
    (device, name) => `vans/van-${device}/${name}`,
    (_name, v) => v,
  )
  const event = value(
    (device) => `events/e-${device}`,
    (n, v, t) => ({ n, v, t: (start + t) / 1000 }),
  )
  const phone = value(
    (device) => `phones/phone-${device}`,
    (_name, v, t) => ({ lat: v, lon: 2, ts: start + t * 20 }),
  )
  const box = value(
    (device) => `boxes/box-${device}`,
    (_name, v, t) => ({ odometer: Math.abs(v), ts: start + t * 20 }),
  )
  const all = [vans, events, { ...phones, thin: { every: '500ms' } }, boxes]
  const ids = ({ payloads }: StateWorld) => payloads.map(({ payloadId }) => payloadId).toSorted()

  /** Conservation: each message has a result or is open. */
  function accountOf(world: StateWorld): number {
    const unsent = world.unsent.reduce((sum, { messages }) => sum + messages, 0)
    return world.closedMessages + unsent + world.mapper.counters().state.messages
  }

  /** An odometer that grows in no time, and comes again behind a newer reading. */
  const resentBehindNewer = [
    { odometer: 0, ts: start, again: false },
    { odometer: 2, ts: start, again: false },
    { odometer: 0, ts: start, again: false },
    { odometer: 0, ts: start + 20, again: true },
  ].map(({ again, ...payload }) => ({
    came: { topic: 'boxes/box-1', payload, after: 0 },
    back: 2,
    again,
  }))

  test('a resend changes no payload, and every message is counted', () => {
    const step = fc.record({
      came: fc.oneof(vanValue, event, phone, box),
      back: fc.nat(10),
      again: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const [once, again] = [openStates(all, pairs), openStates(all, pairs)]
        let at = 0
        let taken = 0
        const implausible = new Set<number>()
        for (const [index, { came, back, again: resent }] of steps.entries()) {
          at += came.after
          // The client id differs, so that the same content later is another message.
          const message = messageOf(came.payload, {
            topic: came.topic,
            arrivedAt: start + at,
            sender: { ...sender, clientId: `client-${index}` },
          })
          const fate = once.deliver(message)
          if (fate === 'part' || fate === 'ignored') taken += 1
          // A reading is judged by the last one. Behind a newer one it is only late, and then it is sent.
          if (again.deliver(message) === 'ignored' && again.unsent.at(-1)?.reason === 'not plausible')
            implausible.add(index)
          const before = Math.max(0, index - back)
          const earlier = steps[before]
          if (!resent || earlier === undefined || implausible.has(before)) continue
          again.deliver(
            messageOf(earlier.came.payload, {
              topic: earlier.came.topic,
              arrivedAt: start + at,
              dup: true,
              sender: { ...sender, clientId: `client-${before}` },
            }),
          )
        }
        expect(accountOf(once)).toBe(taken)
        for (const world of [once, again]) world.tick(Number.POSITIVE_INFINITY)
        expect(ids(again)).toEqual(ids(once))
        expect(accountOf(once)).toBe(taken)
        expect(once.kept.size + again.kept.size).toBe(0)
      }),
      { numRuns: 60, examples: [[resentBehindNewer]] },
    )
  })

  test('a restart at any moment changes no payload', () => {
    const step = fc.record({
      came: fc.oneof(vanValue, event, phone, box),
      restart: fc.boolean(),
      tick: fc.boolean(),
    })
    const unthinned = [vans, events, phones, boxes]
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const [plain, crashing] = [openStates(unthinned, pairs), openStates(unthinned, pairs)]
        let at = 0
        for (const { came, restart, tick } of steps) {
          at += came.after
          if (restart) crashing.restart()
          for (const world of [plain, crashing]) {
            if (tick) world.tick(start + at)
            come(world, { ...came, at })
          }
        }
        crashing.restart()
        for (const world of [plain, crashing]) world.tick(Number.POSITIVE_INFINITY)
        const texts = ({ payloads }: StateWorld) => payloads.map(({ json }) => json).toSorted()
        expect(texts(crashing)).toEqual(texts(plain))
        expect(accountOf(crashing)).toBe(accountOf(plain))
      }),
      { numRuns: 60 },
    )
  })
})

describe('open records under invented names', () => {
  test('take at most half of the state that the spool holds by default, over all sources', () => {
    const world = openStates([vans, { ...vans, name: 'cars', topic: 'cars/{device}/{metric}' }])
    const value = 'x'.repeat(15_000)
    for (let n = 0; n < 1200; n += 1)
      for (const kind of ['vans', 'cars'])
        come(world, { topic: `${kind}/name-${n}/lat`, payload: value, at: n % 100 })
    const bytes = [...world.kept.values()].reduce((sum, { length }) => sum + length, 0)
    expect(bytes).toBeGreaterThan(16 * 1024 * 1024)
    expect(bytes).toBeLessThan(33 * 1024 * 1024)
    // What was closed early is counted.
    const ended = world.unsent.reduce((sum, { messages }) => sum + messages, 0)
    expect(ended + world.mapper.openParts()).toBe(2400)
  })
})
