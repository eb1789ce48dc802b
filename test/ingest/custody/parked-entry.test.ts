// Entries of the queue of parked entries that another version, another program or damage has changed: none stops the
// gateway or those behind it, none is lost.

import { describe, expect, test } from 'vitest'
import type { DeadLetterEntry } from '../../../src/spool/spool.ts'
import { parkedMessage, parkedPayload, readParked } from '../../../src/ingest/custody/parked-entry.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { createCustodyParts } from '../../support/custody-parts.ts'
import { collect } from '../../support/open-spool.ts'
import { createRandom } from '../../support/random.ts'
import { keptNamed, payloadNamed, provider } from '../../support/spool-world.ts'

const parking = { parkedAt: 1, member: 'gw-2' }

function payloadEntry(name: string, of = 'default'): string {
  const { payloadId, json } = payloadNamed(name)
  const payload = { provider: provider(of), payloadId, json: Buffer.from(json), attempts: 1, committedAt: 1 }
  return parkedPayload(payload, parking).body.toString()
}

const messageEntry = (name: string) =>
  parkedMessage({ id: name, keptAt: 1, ...keptNamed(name) }, parking).body.toString()

/** With another value of a member of the first line. */
function withHead(entry: string, changes: object): string {
  const [head = '', ...rest] = entry.split('\n')
  return [JSON.stringify({ ...(JSON.parse(head) as object), ...changes }), ...rest].join('\n')
}

type Change = { head?: object; cut?: string; put?: string }

const bad = rowsBeside(import.meta.filename) as [
  what: string,
  entry: string | ({ payload: Change } | { message: Change }),
][]

/** A text as it is; else an entry with other members in its first line, and `put` from the pattern `cut` on. */
function textOf(entry: (typeof bad)[number][1]): string {
  if (typeof entry === 'string') return entry
  const [whole, change] =
    'payload' in entry ? [payloadEntry('a'), entry.payload] : [messageEntry('a'), entry.message]
  const { head, cut, put = '' } = change
  if (head !== undefined) return withHead(whole, head)
  return whole.replace(new RegExp(cut ?? '', 's'), put)
}

const deadLettersOf = ({
  spool,
}: {
  spool: { deadLetters(filter: object): AsyncIterable<DeadLetterEntry> }
}) => collect(spool.deadLetters({ limit: 100 }))

describe('a parked entry', () => {
  test('has everything of a message that is kept for records of several devices', () => {
    const { envelope, ...kept } = keptNamed('a').message
    const records = [{ index: 3, hash: '0123456789abcdef' }]
    const message = { ...kept, devices: ['a', 'b'], envelope: { ...envelope, records } }
    const { body } = parkedMessage({ id: 'a', keptAt: 1, message }, parking)
    expect(readParked(body)).toMatchObject({ message })
  })

  test.each(bad)(
    'with %s is a dead letter with all its bytes and a copy, and the next one comes',
    async (_, entry) => {
      const text = textOf(entry)
      const world = await createCustodyParts({
        spool: { groupBytesMax: 4e6, bytesMax: 64e6, deadLetterBytesMax: 64e6 },
      })
      world.engine.park(text)
      world.engine.park(payloadEntry('next'))
      await world.passUntil(
        () => world.delivery.counters().delivered === 1 && world.engine.parked.length === 0,
      )
      const letters = await deadLettersOf(world)
      expect(letters.map(({ deadLetter }) => deadLetter.reason)).toEqual(['BAD_PARKED_ENTRY'])
      expect(Buffer.from(letters[0]!.deadLetter.envelope!.bytes, 'base64').toString()).toBe(text)
      expect(world.engine.dead.length).toBe(1)
      expect(world.custody.view()).toMatchObject({ refusedEntries: 1, takenBack: 1 })
      expect(world.custodyEvents).toContainEqual(
        expect.objectContaining({ kind: 'custody_entries_refused', entries: 1, reason: 'BAD_PARKED_ENTRY' }),
      )
    },
  )

  test('of a provider that is not in the config is a dead letter that can be requeued when it is', async () => {
    const world = await createCustodyParts()
    world.engine.park(payloadEntry('a', 'new-provider'))
    world.engine.park(payloadEntry('next'))
    await world.passUntil(() => world.delivery.counters().delivered === 1 && world.engine.parked.length === 0)
    const [letter] = await deadLettersOf(world)
    expect(letter!.deadLetter).toMatchObject({
      stage: 'delivery',
      reason: 'PROVIDER_NOT_IN_CONFIG',
      provider: 'new-provider',
      payloadId: payloadNamed('a').payloadId,
      payload: JSON.parse(payloadNamed('a').json),
    })
    expect(world.spool.lanes().map((lane) => lane.provider)).toEqual(['default'])
    expect(world.engine.dead.length).toBe(1)
  })

  test('with any damage is read or refused, and never throws', () => {
    const random = createRandom(7)
    for (const whole of [payloadEntry('a'), messageEntry('a')])
      for (let round = 0; round < 3000; round += 1) {
        const bytes = Buffer.from(whole)
        for (let change = 0; change <= random.next() * 3; change += 1)
          bytes[Math.floor(random.next() * bytes.length)] = Math.floor(random.next() * 256)
        const entry = readParked(
          bytes.subarray(0, random.next() < 0.3 ? random.next() * bytes.length : undefined),
        )
        expect(typeof entry === 'string' ? entry : entry.id).not.toBe('')
      }
  })
})
