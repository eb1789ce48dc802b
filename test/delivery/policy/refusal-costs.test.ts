// What dead letters cost that are sent again and refused again.

import { expect, onTestFinished, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import { collect } from '../../support/open-spool.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import { deadLetterNamed, exchangeOf, payloadNamed } from '../../support/spool-world.ts'

const minuteMs = 60_000

test('dead letters that are requeued and refused again do not keep fresh payloads waiting for hours', async () => {
  const world = await createDeliveryWorld({})
  onTestFinished(() => world.end())
  const { spool } = world
  const fresh = payloadNamed('fresh').payloadId
  world.service.answer((one) =>
    one.payloadIds.includes(fresh) && one.payloadIds.length === 1
      ? acceptAll(one)
      : { status: 400, body: { message: 'bad' } },
  )
  for (let index = 0; index < 40; index += 1) {
    await spool.exchange(exchangeOf({ deadLetters: [deadLetterNamed(`bad-${index}`).deadLetter] }))
    const take = (await collect(spool.deadLetters({ limit: 1 }))).map(({ id }) => id)
    await spool.exchange(exchangeOf({ take, payloads: [payloadNamed(`bad-${index}`)] }))
    await world.pass(5000)
  }
  expect(world.delivery.providers()[0]?.endpoint).toBe('unavailable')
  await world.publish('fresh')
  await world.pass(30 * minuteMs)
  expect(spool.totals()).toMatchObject({ delivered: 1 })
})
