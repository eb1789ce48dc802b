import { describe, expect, test } from 'vitest'
import { truckSource } from '../../support/mapping-world.ts'
import { collect, keptIn } from '../../support/open-spool.ts'
import { openKeptWorld, position, topicOf, type KeptWorld } from '../../support/kept-world.ts'

const shelf = 'deferred:odd'
const odd = (jsonata: string, more: Record<string, unknown> = {}) =>
  truckSource({}, { name: 'odd', topic: 'odd/{device}', jsonata, ...more })
const renamed = '{ "ts": t, "lat": p[0], "lon": p[1] }'
const oddly = (n: number) => ({ t: position(n).ts, p: [position(n).lat, 13.4] })
const sources = (jsonata: string) => [odd(jsonata), truckSource()]

async function publishOdd({ publish }: KeptWorld, from: number, count: number) {
  await Promise.all(Array.from({ length: count }, (_, n) => publish('odd/van-1', oddly(from + n))))
}

const times = (count: number) => Array.from({ length: count }, (_, n) => position(n).ts)

describe('messages of a source with an expression', () => {
  test('are acknowledged at once and sent in order when they were evaluated', async () => {
    const kept = await openKeptWorld({ sources: sources(renamed), unknown: 'accept' })
    await publishOdd(kept, 0, 100)
    expect(kept.intake.counters()).toMatchObject({ received: 100, deferred: 100, mapped: 0 })
    kept.deferred.start()
    await kept.deferred.idle()
    expect((await kept.sent()).map(({ time }) => time)).toEqual(times(100))
    expect(await keptIn(kept.world.spool, shelf)).toEqual([])
    expect(kept.deferred.counters()).toMatchObject({ evaluated: 100, payloads: 100, dead: 0 })
  })

  test('are evaluated when they arrive, and after a restart', async () => {
    const before = await openKeptWorld({ sources: sources(renamed), unknown: 'accept' })
    // Nothing was started: they wait on the disk.
    await before.deferred.stop()
    await publishOdd(before, 0, 40)
    await before.leave()
    const kept = await openKeptWorld({
      path: before.world.path,
      sources: sources(renamed),
      unknown: 'accept',
    })
    kept.deferred.start()
    await publishOdd(kept, 40, 20)
    await kept.deferred.idle()
    expect((await kept.sent()).map(({ time }) => time)).toEqual(times(60))
  })

  test('become dead letters with a reason when they fail, loop or cannot be read; the others continue', async () => {
    const expression = 't = 1 ? $error("no such thing") : t = 2 ? $match(x, /^(a+)+$/) : t = 3 ? [] : $'
    const kept = await openKeptWorld({
      sources: sources(`(${expression}).{ "ts": t, "lat": p[0], "lon": p[1] }`),
      unknown: 'accept',
    })
    await kept.publish('odd/van-1', oddly(0))
    await kept.publish('odd/van-1', { t: 1 })
    await kept.publish('odd/van-1', { t: 2, x: `${'a'.repeat(60)}b` })
    await kept.publish('odd/van-1', 'no json')
    await kept.publish('odd/van-1', '')
    await kept.publish('odd/van-1', oddly(1))
    kept.deferred.start()
    await kept.deferred.idle()
    expect((await kept.sent()).map(({ time }) => time)).toEqual(times(2))
    const deadLetters = await collect(kept.world.spool.deadLetters({ limit: 10 }))
    expect(deadLetters.map(({ deadLetter }) => deadLetter.reason)).toEqual([
      'EXPRESSION_FAILED',
      'EXPRESSION_TIMEOUT',
      'NOT_JSON',
    ])
    expect(deadLetters.map(({ deadLetter }) => deadLetter.envelope?.source)).toEqual(['odd', 'odd', 'odd'])
    expect(kept.deferred.counters()).toMatchObject({ evaluated: 6, dead: 3, timeouts: 1 })
  })

  test('of an unknown device wait in quarantine and are sent when it is listed', async () => {
    const source = odd('{ "id": who, "ts": t, "lat": p[0], "lon": p[1] }', { device: { path: 'id' } })
    const kept = await openKeptWorld({ sources: [source], unknown: 'quarantine' })
    await kept.publish('odd/gate', { ...oddly(0), who: 'van-7' })
    kept.deferred.start()
    await kept.deferred.idle()
    expect(await keptIn(kept.world.spool, 'quarantine:default', 'van-7')).toEqual(['odd/gate'])
    await kept.change({ listed: ['van-7'] })
    await kept.release.idle()
    await kept.deferred.idle()
    expect(await kept.sent()).toMatchObject([{ device: 'van-7', time: position(0).ts }])
  })

  test('do not delay other sources', async () => {
    const kept = await openKeptWorld({ sources: sources('$match(x, /^(a+)+$/)'), unknown: 'accept' })
    for (let n = 0; n < 3; n += 1) void kept.publish('odd/van-1', { x: `${'a'.repeat(60)}b` })
    kept.deferred.start()
    await kept.publish(topicOf('truck-1'), position(1))
    expect(kept.deferred.counters().evaluated).toBe(0)
    expect(kept.intake.counters()).toMatchObject({ mapped: 1, deferred: 3 })
    await kept.deferred.idle()
    expect(kept.deferred.counters()).toMatchObject({ evaluated: 3, dead: 3, timeouts: 3 })
  })

  test('are evaluated by the expression of a new mapping, or mapped without one', async () => {
    const kept = await openKeptWorld({ sources: sources(renamed), unknown: 'accept' })
    await publishOdd(kept, 0, 10)
    const plain = truckSource(
      { time: { path: 't', format: 'ms' }, latitude: { path: 'p[0]' }, longitude: { path: 'p[1]' } },
      { name: 'odd', topic: 'odd/{device}' },
    )
    await kept.change({ sources: [plain] })
    await kept.deferred.idle()
    expect((await kept.sent()).map(({ time }) => time)).toEqual(times(10))
  })
})
