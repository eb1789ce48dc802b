// Messages that are kept when a gateway is lost or before they can be mapped: open records, shelves, dead letters.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createCustodyParts } from '../../support/custody-parts.ts'
import { startCustodyGateway } from '../../support/custody-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { collect } from '../../support/open-spool.ts'
import { messageOf, topicOf } from '../../support/pipeline-world.ts'
import { createScriptedEngine } from '../../support/scripted-engine.ts'
import { spawnCommand } from '../../support/spawned-daemon.ts'

const timeout = 180_000

describe('a record that is open when the disk is lost', { timeout }, () => {
  const topic = (metric: string) => `values/truck-1/${metric}`
  test.each([
    [
      'coalesce',
      `{ name: values, topic: "values/{device}/{metric}", encoding: scalar,
      coalesce: { name: "{metric}", window: 10m, require: [latitude, longitude] },
      map: { time: { format: arrival }, latitude: { path: latitude }, longitude: { path: longitude } } }`,
      '52.5',
      '13.4',
    ],
    [
      'merge',
      `{ name: positions, topic: "values/{device}/latitude", merge: { group: truck, window: 10m },
      map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }
  - { name: odometers, topic: "values/{device}/longitude", merge: { group: truck, window: 10m },
      map: { time: { path: ts, format: ms }, signals: [{ type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }] } }`,
      '{"ts":1763690000000,"lat":52.5,"lon":13.4}',
      '{"ts":1763690000000,"odometer":1000}',
    ],
  ])('is collected again by another gateway (%s)', async (_, source, latitude, longitude) => {
    const engine = createScriptedEngine()
    const first = await startCustodyGateway(engine, { source })
    engine.publish(topic('latitude'), latitude)
    await eventually(() => first.custody().waitsFor === 'open records of the mapping')
    expect(first.custody().outstanding).toBe(1)
    await first.lose()
    expect(engine.counts.acked).toBe(0)
    await startCustodyGateway(engine, { source, baseUrl: first.baseUrl })
    engine.publish(topic('longitude'), longitude)
    await eventually(() => engine.counts.acked === 2)
    const received = first.sandbox.received({ limit: 10 })
    expect(received.map(({ payload }) => payload['gps'])).toEqual([
      expect.objectContaining({ latitude: 52.5, longitude: 13.4 }),
    ])
    expect(engine.counts.redelivered).toBe(1)
  })
})

describe('messages on shelves', () => {
  test('are parked, and come back to their shelf in their turn', async () => {
    const shelves = ['deferred:trucks', 'quarantine:default', 'clock:default']
    const world = await createCustodyParts()
    const names: string[] = []
    for (let round = 0; round < 3; round += 1)
      for (const shelf of shelves) {
        const name = `${shelf}-${round}`
        names.push(name)
        world.words(`keep ${shelf} ${name}`)
        await world.pass(1000)
      }
    const kept = async () =>
      (
        await Promise.all(
          world.spool
            .shelves()
            .map(({ shelf }) => collect(world.spool.keptMessages(shelf, null, { limit: 100 }))),
        )
      ).flat()
    const before = await kept()
    await world.passUntil(() => world.engine.counts.acked === names.length)
    expect(world.engine.parked.length).toBe(names.length)
    expect(await kept()).toEqual([])
    const after = []
    await world.passUntil(() => world.custody.view().takenBack > 0)
    // In the order in which they were parked: those that came first come back first.
    for (const last = names.length; world.custody.view().takenBack < last;) await world.pass(100)
    after.push(...(await kept()))
    const contentOf = ({ message }: (typeof before)[number]) => message
    for (const shelf of shelves) {
      const of = (entries: typeof before) => entries.map(contentOf).filter((one) => one.shelf === shelf)
      expect(of(after)).toEqual(of(before))
    }
    await world.passUntil(() => world.custody.view().parked === 2 * names.length)
    expect(world.custody.view()).toMatchObject({ parkedAndReleased: 0, parkedDuplicates: 0 })
  })
})

describe('copies of dead letters', { timeout }, () => {
  test('are made once, and another gateway imports them when the first one was lost with its disk', async () => {
    const engine = createScriptedEngine({ partitions: 1 })
    const folder = await newFolder()
    const slowly = { folder, factor: 10, delivery: 'batch: { linger: 200ms }, errors: { Validation: [1s] }' }
    const faults = [{ fail: [{ device: 'truck-bad', error_type: 'Validation' }] }]
    const first = await startCustodyGateway(engine, { ...slowly, sandbox: { faults } })
    engine.publish(topicOf('truck-1'), 'not json')
    engine.publish(topicOf('truck-bad'), messageOf(1))
    await eventually(() => engine.counts.acked === 2)
    expect(engine.dead.length).toBe(2)
    // A restart copies nothing again.
    engine.leave(first.source)
    await first.gateway.stop('restart')
    const second = await startCustodyGateway(engine, { ...slowly, baseUrl: first.baseUrl })
    engine.publish(topicOf('truck-1'), 'not json either')
    await eventually(() => engine.counts.acked === 3)
    expect(engine.dead.length).toBe(3)
    await second.lose()
    first.sandbox.setFaults([])
    const third = await startCustodyGateway(engine, { factor: 10, baseUrl: first.baseUrl })
    const file = join(await newFolder(), 'copies.ndjson')
    await writeFile(file, engine.dead.join(''))
    const config = join(third.folder, 'gateway.yaml')
    const said = await spawnCommand(['dead-letters', 'requeue', '--config', config, '--file', file]).ended
    expect(said).toContain('1 payload will be sent')
    await eventually(() => first.sandbox.stats().payloadsAccepted === 1)
    await eventually(() => third.status().spool.deadLetters === 2)
    // The same file again brings nothing new.
    await spawnCommand(['dead-letters', 'requeue', '--config', config, '--file', file]).ended
    expect(third.status().spool.deadLetters).toBe(2)
    expect(first.sandbox.stats().payloadsAccepted).toBe(1)
  })
})
