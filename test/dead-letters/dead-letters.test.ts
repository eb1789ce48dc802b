import { describe, expect, test } from 'vitest'
import { purgeByAge, type DeadLetterQuery } from '../../src/dead-letters/dead-letters.ts'
import { eventually } from '../support/eventually.ts'
import { collect } from '../support/open-spool.ts'
import {
  openLettersWorld,
  refusedMessage,
  refusedPayload,
  telemetryOf,
  type LettersWorld,
} from '../support/dead-letters-world.ts'
import { exchangeOf, payloadNamed } from '../support/spool-world.ts'

const never = new AbortController().signal

describe('dead letters are listed', () => {
  test('by stage, reason and what the service said of the fields, with how many devices', async () => {
    const world = await openLettersWorld()
    const speed = (n: number) => ({
      payloadId: 'p',
      errorType: 'Validation',
      errorMessage: 'no',
      validationErrorDetails: [{ field: 'gps.speed', message: `is ${n}, at most 200` }],
    })
    await world.bury(
      ...['a', 'b', 'a', 'c'].map((device, n) => refusedPayload(device, { at: 1000 + n })),
      refusedPayload('d', { failure: speed(900) }),
      refusedPayload('e', { failure: speed(1000) }),
      refusedMessage('one'),
    )
    const { groups, scanned, more } = await world.work.list({}, 10)
    expect([scanned, more]).toEqual([7, false])
    expect(groups).toMatchObject([
      {
        stage: 'delivery',
        fields: 'gps.latitude must not be empty',
        count: 4,
        devices: 3,
        oldestAt: 1000,
        latestAt: 1003,
      },
      { stage: 'delivery', fields: 'gps.speed is 900, at most 200', count: 2, devices: 2 },
      { stage: 'mapping', reason: 'NOT_JSON', source: 'trucks', fields: null, count: 1 },
    ])
  })

  test.each<[string, DeadLetterQuery, string[]]>([
    ['a stage', { stage: 'mapping' }, ['message']],
    ['a device', { device: 'a' }, ['a']],
    ['a source', { source: 'trucks' }, ['message']],
    ['a provider', { provider: 'other' }, ['b']],
    ['a time', { since: 2000, until: 3000 }, ['b']],
    ['a reason', { reason: 'Internal' }, ['c']],
    ['all of it together', { stage: 'delivery', since: 2000, reason: 'Internal' }, ['c']],
  ])('by %s', async (_, query, expected) => {
    const world = await openLettersWorld()
    await world.bury(
      refusedPayload('a', { at: 1000 }),
      refusedPayload('b', { at: 2000, provider: 'other' as never }),
      refusedPayload('c', { at: 3000, reason: 'Internal' }),
      refusedMessage('message', { device: 'message' }),
    )
    const { deadLetters: letters } = await world.work.list(query, 10)
    expect((letters as { device: string }[]).map(({ device }) => device)).toEqual(expected)
  })
})

describe('requeue', () => {
  test('sends payloads under their payloadId, with attempts from 0, past the dedup window, and they are letters no more', async () => {
    const world = await openLettersWorld()
    // The window knows it: it came a moment ago.
    await world.publish('a')
    await world.sent()
    await world.bury(refusedPayload('a'), refusedPayload('b'))
    const report = await world.work.requeue({}, { dryRun: false }, never)
    expect(report).toEqual({ dryRun: false, payloads: 2, left: {}, missing: [], remap: null })
    expect(await world.left()).toEqual([])
    const [batch] = await (async () => {
      const lane = world.spool.lanes()[0]!.id
      return [await world.spool.seal(lane, { payloadsMax: 10, bodyBytesMax: 1e6 })]
    })()
    const loaded = await world.spool.load(batch!)
    if (loaded.kind !== 'content') throw new Error('damaged')
    expect(loaded.content.payloadIds).toEqual([payloadNamed('a').payloadId, payloadNamed('b').payloadId])
    expect(loaded.content.attempts).toEqual([0, 0])
    expect(JSON.parse(loaded.content.payload(0).toString())).toEqual(telemetryOf('a'))
    expect(world.eventsOf('dead_letters_requeued')).toEqual([
      { kind: 'dead_letters_requeued', deadLetters: 2, payloads: 2 },
    ])
    expect(world.work.counters().requeued).toBe(2)
  })

  test('takes what is meant and leaves the rest', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedPayload('b'), refusedPayload('c', { reason: 'Internal' }))
    await world.work.requeue({ reason: 'Validation', device: 'b' }, { dryRun: false }, never)
    expect(await world.left()).toEqual(['a', 'c'])
    const report = await world.work.requeue(
      { ids: [await world.idOf('c'), 'f'.repeat(32)] },
      { dryRun: false },
      never,
    )
    expect(report).toMatchObject({ payloads: 1, missing: ['f'.repeat(32)] })
    expect(await world.left()).toEqual(['a'])
  })

  test('a dry run says what would go and changes nothing', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedPayload('b'))
    expect(await world.work.requeue({}, { dryRun: true }, never)).toMatchObject({ payloads: 2 })
    expect([await world.left(), world.payloads()]).toEqual([['a', 'b'], 0])
    expect(world.eventsOf('dead_letters_requeued')).toEqual([])
  })

  test('gives letters of the mapping to the mapping in force', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedMessage('one'), refusedMessage('two', { reason: 'NO_TIME' }))
    const report = await world.work.requeue({ reason: 'NOT_JSON' }, { dryRun: false }, never)
    expect(world.remapped).toEqual([['one']])
    expect(report.remap).toMatchObject({ deadLetters: 1 })
  })

  test('leaves alone what a person dropped from quarantine, unless it is asked for by its reason or id', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedMessage('one', { reason: 'DROPPED_BY_OPERATOR', device: 'one' }))
    const all = await world.work.requeue({}, { dryRun: false }, never)
    expect(all).toMatchObject({ left: { [Object.keys(all.left)[0]!]: 1 }, remap: null })
    expect(Object.keys(all.left)[0]).toMatch(
      /dropped from quarantine by hand: .*--reason DROPPED_BY_OPERATOR/,
    )
    expect(world.remapped).toEqual([])
    await world.work.requeue({ reason: 'DROPPED_BY_OPERATOR' }, { dryRun: false }, never)
    await world.work.requeue({ ids: [await world.idOf('one')] }, { dryRun: false }, never)
    expect(world.remapped).toEqual([['one'], ['one']])
  })

  test('leaves payloads of a provider that is not in the config, and says so', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a', { provider: 'gone' as never }))
    const { left, payloads } = await world.work.requeue({}, { dryRun: false }, never)
    expect([payloads, left]).toEqual([0, { 'the provider "gone" is not in the config': 1 }])
    expect(await world.left()).toEqual(['a'])
  })

  test('letters that come while it runs are left for the next time', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'))
    const later = world.clock.now() + 1
    await world.bury(refusedPayload('b', { at: later }))
    const requeuing = world.work.requeue({}, { dryRun: false }, never)
    world.clock.stepWall(10)
    await requeuing
    expect(await world.left()).toEqual(['b'])
  })

  test('those of a clock that was ahead and is right again are old ones', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a', { at: world.clock.now() + 86_400_000 }))
    expect(await world.work.requeue({}, { dryRun: false }, never)).toMatchObject({ payloads: 1 })
    expect(await world.left()).toEqual([])
  })

  test('counts and tells what is on its way, where somebody hangs up while there is no room', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedPayload('b'))
    const stop = new AbortController()
    world.fillUp()
    const timers = world.clock.pending()
    const requeuing = world.work.requeue({}, { dryRun: false }, stop.signal)
    await eventually(() => world.clock.pending() > timers)
    stop.abort()
    expect(await requeuing).toMatchObject({ payloads: 0 })
    expect(world.work.counters().requeued).toBe(0)
    expect(world.eventsOf('dead_letters_requeued')).toEqual([])
    expect(await world.left()).toEqual(['a', 'b'])
  })

  test('thousands go in groups, and one that somebody else takes ends it with the others where they were', async () => {
    const world = await openLettersWorld()
    const letters = Array.from({ length: 1200 }, (_, n) => refusedPayload(`truck-${n}`))
    await world.spool.exchange(exchangeOf({ deadLetters: letters }))
    const stop = new AbortController()
    // Caught at once: it may end while the other one is still being waited for.
    const requeuing = world.work.requeue({}, { dryRun: false }, stop.signal).then(
      () => 'all gone',
      (error: unknown) => (error as { code?: string }).code,
    )
    const last = await world.idOf('truck-1199')
    const taken = await world.spool.exchange(exchangeOf({ take: [last] })).then(
      () => 1,
      () => 0,
    )
    expect(['all gone', 'SPOOL_ENTRY_GONE']).toContain(await requeuing)
    const left = await world.left()
    expect(left.length + world.payloads()).toBe(1200 - taken)
    expect(new Set(left).size).toBe(left.length)
  })
})

describe('edit', () => {
  const edited = (world: LettersWorld, id: string, payload: unknown) =>
    world.work.edit(id, typeof payload === 'string' ? payload : JSON.stringify(payload), never)

  test('sends what was mended in its place, under the same payloadId', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'))
    const id = await world.idOf('a')
    const mended = telemetryOf('a', { gps: { latitude: 1, longitude: 2 }, more: { fields: [1] } })
    const { payloadId } = payloadNamed('a')
    expect(await edited(world, id, mended)).toEqual({ id, payloadId, previousPayloadId: payloadId })
    expect(await world.sent()).toEqual([mended])
    expect(await world.left()).toEqual([])
    expect(world.eventsOf('dead_letter_edited')).toHaveLength(1)
  })

  test('a payload without its payloadId gets it back, in front', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'))
    const { payloadId: _without, ...rest } = telemetryOf('a')
    await edited(world, await world.idOf('a'), rest)
    expect(Object.keys((await world.sent())[0]!)[0]).toBe('payloadId')
  })

  test.each([
    ['device', { deviceIdentifier: { id: 'b' } }],
    ['time', { signalTimestamp: 5 }],
    ['asset', { assetIdentifier: { id: 'x' } }],
  ])(
    'another %s makes it another reading with a payloadId of its own, the same each time',
    async (_, changes) => {
      const ids: string[] = []
      for (let round = 0; round < 2; round += 1) {
        const world = await openLettersWorld()
        await world.bury(refusedPayload('a'))
        const { payloadId, previousPayloadId: was } = await edited(
          world,
          await world.idOf('a'),
          telemetryOf('a', changes),
        )
        expect(payloadId).not.toBe(was)
        expect(payloadId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect((await world.sent())[0]).toEqual(telemetryOf('a', { ...changes, payloadId }))
        ids.push(payloadId)
      }
      expect(ids[0]).toBe(ids[1])
    },
  )

  test.each([
    ['no JSON', '{', /no JSON/],
    ['a list', [], /no JSON object/],
    [
      'a latitude beyond the pole',
      telemetryOf('a', { gps: { latitude: 91, longitude: 0 } }),
      /gps\.latitude/,
    ],
    [
      'a latitude that is empty',
      telemetryOf('a', { gps: { latitude: null, longitude: 0 } }),
      /gps\.latitude/,
    ],
    ['a time that is text', telemetryOf('a', { signalTimestamp: 'now' }), /signalTimestamp/],
    [
      'a signal whose value is a number',
      telemetryOf('a', { signals: [{ type: 'X', value: 1 }] }),
      /signals\.0\.value/,
    ],
    ['nothing measured', telemetryOf('a', { gps: undefined }), /neither gps nor signals/],
    ['nobody named', telemetryOf('a', { deviceIdentifier: undefined }), /neither a device nor an asset/],
    ['another payloadId', telemetryOf('a', { payloadId: payloadNamed('b').payloadId }), /leave it as it is/],
    ['a megabyte', telemetryOf('a', { note: 'x'.repeat(1024 ** 2) }), /more than 262144 bytes/],
  ])('refuses %s, and the letter stays', async (_, payload, why) => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'))
    await expect(edited(world, await world.idOf('a'), payload)).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
      why: expect.stringMatching(why) as string,
    })
    expect([await world.left(), world.payloads()]).toEqual([['a'], 0])
  })

  test('refuses a message, which has no payload, and an id that is gone', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedMessage('one', { device: 'one' }))
    await expect(edited(world, await world.idOf('one'), {})).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
    })
    await expect(edited(world, 'f'.repeat(32), {})).rejects.toMatchObject({ code: 'SPOOL_ENTRY_GONE' })
  })
})

describe('export and import', () => {
  test('what was exported and purged comes back and is sent', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedMessage('one'))
    const text = (await collect(world.work.export({}))).join('')
    await world.work.purge({}, { dryRun: false }, never)
    const report = await world.work.importLines(text, { dryRun: false }, never)
    expect(report).toMatchObject({ payloads: 1, duplicates: 0, suspect: 0, remap: { deadLetters: 1 } })
    expect(await world.sent()).toEqual([telemetryOf('a')])
    expect(world.remapped).toEqual([['one']])
    expect(world.eventsOf('dead_letters_imported')).toMatchObject([
      { payloads: 1, messages: 1, duplicates: 0 },
    ])
  })

  test('what is in the spool already is refused as a copy, and so is the same line twice', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedPayload('b'), refusedMessage('one'))
    const text = (await collect(world.work.export({}))).join('')
    await world.work.requeue({ device: 'a' }, { dryRun: false }, never)
    expect(await world.work.importLines(text, { dryRun: false }, never)).toMatchObject({
      payloads: 0,
      duplicates: 3,
      remap: null,
    })
    const [line = ''] = text.split('\n')
    const stranger = line.replaceAll(payloadNamed('a').payloadId, payloadNamed('new').payloadId)
    expect(await world.work.importLines(`${stranger}\n${stranger}`, { dryRun: false }, never)).toMatchObject({
      payloads: 1,
      duplicates: 1,
    })
  })

  test('one line that is wrong changes nothing, and all of them are told', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'))
    const [line = ''] = await collect(world.work.export({}))
    await world.work.purge({}, { dryRun: false }, never)
    const wrong = [line.trim(), 'no json', '{"kind":"other"}', line.trim().replace('"default"', '"gone"')]
    const fault = {
      code: 'DEAD_LETTER_INVALID',
      why: expect.stringMatching(/line 2: .*line 3: .*line 4: .*"gone"/) as string,
    }
    await expect(world.work.importLines(wrong.join('\n'), { dryRun: false }, never)).rejects.toMatchObject(
      fault,
    )
    expect(world.payloads()).toBe(0)
  })

  test('suspect lines are left out while they say so', async () => {
    const world = await openLettersWorld()
    const line = { kind: 'payload', provider: 'default', suspect: 'a checksum', payload: telemetryOf('a') }
    const report = await world.work.importLines(JSON.stringify(line), { dryRun: false }, never)
    expect([report.suspect, report.payloads, world.payloads()]).toEqual([1, 0, 0])
  })

  test('a payload of a lane whose record is lost goes to the only provider there is', async () => {
    const line = JSON.stringify({ kind: 'payload', provider: null, payload: telemetryOf('a') })
    const one = await openLettersWorld()
    expect(await one.work.importLines(line, { dryRun: false }, never)).toMatchObject({ payloads: 1 })
    const two = await openLettersWorld({ providers: ['x', 'y'] })
    await expect(two.work.importLines(line, { dryRun: false }, never)).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
    })
  })

  test('a dry run takes nothing', async () => {
    const world = await openLettersWorld()
    const line = JSON.stringify({ kind: 'payload', provider: 'default', payload: telemetryOf('a') })
    expect(await world.work.importLines(line, { dryRun: true }, never)).toMatchObject({
      payloads: 1,
      dryRun: true,
    })
    expect(world.payloads()).toBe(0)
  })
})

describe('purge', () => {
  test('deletes what is meant, with an event at error and a counter, and a dry run nothing', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('a'), refusedPayload('b'), refusedMessage('one', { device: 'one' }))
    const dry = await world.work.purge({ stage: 'delivery' }, { dryRun: true }, never)
    expect(dry).toEqual({ dryRun: true, deadLetters: 2, reasons: { 'delivery Validation': 2 } })
    expect(await world.left()).toEqual(['a', 'b', 'one'])
    expect(world.eventsOf('dead_letters_purged')).toEqual([])
    await world.work.purge({ stage: 'delivery' }, { dryRun: false }, never)
    expect(await world.left()).toEqual(['one'])
    expect(world.eventsOf('dead_letters_purged')).toEqual([
      { kind: 'dead_letters_purged', deadLetters: 2, by: 'operator', reasons: '2 delivery Validation' },
    ])
    expect(world.work.counters().purged).toEqual({ operator: 2, age: 0 })
  })
})

describe('dead letters that are older than dead_letters.retention', () => {
  const dayMs = 86_400_000

  async function aged(offsetMs: number | null) {
    const world = await openLettersWorld()
    const { clock, work } = world
    const now = clock.now()
    await world.bury(
      refusedPayload('unset clock', { at: 1000 }),
      refusedPayload('old', { at: now - 3 * dayMs }),
      refusedPayload('young', { at: now - dayMs / 2 }),
    )
    const purging = purgeByAge({ work, clock, clockOffsetMs: () => offsetMs }, { retentionMs: dayMs })
    const timers = clock.pending()
    await clock.advance(600_000)
    // The next look is planned when this one has ended.
    await eventually(() => clock.pending() === timers)
    await purging.stop()
    return world
  }

  test('are deleted and told on a clock that is known; what has no age stays', async () => {
    const world = await aged(0)
    expect(await world.left()).toEqual(['unset clock', 'young'])
    expect(world.eventsOf('dead_letters_purged')).toMatchObject([{ deadLetters: 1, by: 'age' }])
    expect(world.work.counters().purged).toEqual({ operator: 0, age: 1 })
  })

  test('stay while the true time is not known', async () => {
    const world = await aged(null)
    expect(await world.left()).toEqual(['unset clock', 'old', 'young'])
  })

  test.each([
    ['ahead of the service', -5 * dayMs],
    ['behind the service', 5 * dayMs],
  ])('a clock that is days %s makes no letter older than it is', async (_, offsetMs) => {
    const world = await aged(offsetMs)
    expect(await world.left()).toContain('young')
  })

  test('nothing is deleted by age where the config does not say so', async () => {
    const world = await openLettersWorld()
    await world.bury(refusedPayload('old', { at: world.clock.now() - 1000 * dayMs }))
    await world.clock.advance(10 * 600_000)
    expect(await world.left()).toEqual(['old'])
  })
})
