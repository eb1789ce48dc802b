// Properties of MQTT 5 of messages that are kept whole, on real LevelDB: what the mapping reads of them is the same when
// they leave, also after a restart.

import { expect, test } from 'vitest'
import { envelopeOf, type Envelope } from '../../../src/domain/message.ts'
import { messageFrom } from '../../../src/ingest/remap/kept-message.ts'
import { openKeptWorld, position, type KeptWorld } from '../../support/kept-world.ts'
import { messageOf, truckSource } from '../../support/mapping-world.ts'
import { collect, openSpoolWorld } from '../../support/open-spool.ts'
import { deadLetterNamed } from '../../support/spool-world.ts'

const properties = { contentType: 'gps', correlation: 'AAH/', expiryS: 60, isText: true } as const
const userProperties = { vin: 'truck-1', '__proto__.x': 'a', 2: 'b' }
const sent = { userProperties, properties }

const fields = {
  type: { path: '$packet.content_type', type: 'text' },
  correlation: { path: '$packet.correlation_data', type: 'text' },
}
const source = truckSource(
  { fields },
  { topic: 'up', device: '{user.vin}', when: 'packet.content_type == "gps"' },
)
const mapped = { type: 'gps', correlation: 'AAH/', deviceIdentifier: { id: 'truck-1' } }

async function payloadsOf(kept: KeptWorld) {
  return (await kept.sent()).map(({ payload }) => payload)
}

test('the properties of a quarantined message are read when its device is listed', async () => {
  const before = await openKeptWorld({ sources: [source] })
  await before.publish('up', position(0), sent)
  await before.publish('up', position(1), { ...sent, properties: { contentType: 'status' } })
  expect(before.intake.counters()).toMatchObject({ quarantined: 1, ignored: 1 })
  await before.leave()
  const kept = await openKeptWorld({ path: before.world.path, sources: [source] })
  await kept.change({ listed: ['truck-1'] })
  await kept.release.idle()
  expect(await payloadsOf(kept)).toMatchObject([mapped])
})

test('the properties of a dead letter are read when it is mapped again', async () => {
  const wrong = truckSource({}, { topic: 'up', device: { path: 'imei' } })
  const before = await openKeptWorld({ sources: [wrong], unknown: 'accept' })
  await before.publish('up', position(0), sent)
  // With DUP and the same packet identifier: it differs in a property only, so it is another message.
  await before.publish('up', position(0), { ...sent, dup: true, userProperties: { vin: 'truck-2' } })
  await before.publish('up', position(0), { ...sent, dup: true, userProperties: { vin: 'truck-2' } })
  expect(before.intake.counters()).toMatchObject({ dead: 2, duplicates: 1 })
  await before.leave()
  const kept = await openKeptWorld({ path: before.world.path, sources: [source], unknown: 'accept' })
  expect(await kept.remap()).toMatchObject({ payloads: 2 })
  expect((await payloadsOf(kept)).map(({ deviceIdentifier }) => deviceIdentifier)).toEqual([
    { id: 'truck-1' },
    { id: 'truck-2' },
  ])
})

test('records of versions before and after this one are read', async () => {
  const world = await openSpoolWorld()
  const { spool } = world
  const message = messageOf(position(0), { topic: 'up', ...sent })
  const { properties: _, ...earlier } = envelopeOf(message, null)
  const later = { ...envelopeOf(message, null), properties: { ...properties, topicAlias: 5 }, another: 1 }
  for (const envelope of [envelopeOf(message, null), earlier, later as Envelope]) {
    spool.addDeadLetter({ ...deadLetterNamed('a').deadLetter, envelope })
    await new Promise((resolve) => spool.endMessage(resolve))
  }
  const { spool: reopened } = await world.reopen()
  const letters = await collect(reopened.deadLetters({ limit: 10 }))
  const read = letters.map(({ deadLetter }) => deadLetter.envelope && messageFrom(deadLetter.envelope))
  expect(read.map((one) => one?.properties)).toEqual([
    properties,
    undefined,
    { ...properties, topicAlias: 5 },
  ])
  expect(read.map((one) => one?.userProperties)).toEqual([userProperties, userProperties, userProperties])
  expect(read.map((one) => one?.bytes)).toEqual([message.bytes, message.bytes, message.bytes])
})
