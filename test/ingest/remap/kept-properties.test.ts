// Properties of MQTT 5 of messages that are kept whole, on real LevelDB: what the mapping reads of them is the same when
// they leave, also after a restart.

import { expect, test } from 'vitest'
import { envelopeOf, type Envelope } from '../../../src/domain/message.ts'
import { messageFrom } from '../../../src/ingest/remap/kept-message.ts'
import { position } from '../../support/kept-world.ts'
import { messageOf } from '../../support/mapping-world.ts'
import { collect, openSpoolWorld } from '../../support/open-spool.ts'
import { deadLetterNamed } from '../../support/spool-world.ts'

const properties = { contentType: 'gps', correlation: 'AAH/', expiryS: 60, isText: true } as const
const userProperties = { vin: 'truck-1', '__proto__.x': 'a', 2: 'b' }
const sent = { userProperties, properties }

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
