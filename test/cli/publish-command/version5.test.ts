import { connectAsync, type IPublishPacket } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { publishOne } from '../../../src/cli/publish-command/one-message.ts'
import type { Message } from '../../../src/domain/message.ts'
import { listen } from '../../../src/learn/learn.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { runCli } from '../../support/cli-world.ts'
import { hasMosquitto, startMosquitto } from '../../support/mosquitto.ts'

// What publishes and listens with --mqtt 5, at another broker that checks the packets: Mosquitto.

describe.skipIf(!hasMosquitto)('with --mqtt 5', () => {
  test('publish sends user properties and the content type', async () => {
    const { port } = await startMosquitto()
    const url = `mqtt://127.0.0.1:${port}`
    const subscriber = await connectAsync(url, { protocolVersion: 5 })
    await subscriber.subscribeAsync('t', { qos: 1 })
    const came = new Promise<IPublishPacket>((resolve) => {
      subscriber.once('message', (_topic, _bytes, packet) => resolve(packet))
    })
    const properties = { userProperties: { vin: 'V1', lamp: ['a=b', 'c'] }, contentType: 'json' }
    const stop = new AbortController().signal
    const message = { topic: 't', bytes: Buffer.from('x'), client: 'hand', stop, properties }
    await publishOne(message, { url, protocolVersion: 5 })
    expect((await came).properties).toMatchObject({
      contentType: 'json',
      userProperties: { vin: 'V1', lamp: ['a=b', 'c'] },
    })
    await subscriber.endAsync()
  })

  test('learn hears user properties, and simulate has its messages acknowledged', async () => {
    const { port } = await startMosquitto()
    const brokerUrl = `mqtt://127.0.0.1:${port}`
    const messages: Message[] = []
    const ending = new AbortController()
    const subscribed = Promise.withResolvers<void>()
    const listening = listen(
      {
        clock: systemClock,
        signal: ending.signal,
        onSubscribed: subscribed.resolve,
        onMessage: (message) => messages.push(message),
      },
      {
        brokerUrl,
        filter: '#',
        clientId: 'listener',
        protocolVersion: 5,
        username: undefined,
        password: undefined,
        ca: undefined,
        forMs: 60_000,
      },
    )
    await subscribed.promise
    const stop = new AbortController().signal
    const properties = { userProperties: { vin: ['V1', 'V2'] } }
    await publishOne(
      { topic: 'hand', bytes: Buffer.from('x'), client: 'hand', stop, properties },
      { url: brokerUrl, protocolVersion: 5 },
    )
    const options = ['--devices', '3', '--rate', '1000', '--count', '30', '--mqtt', '5']
    const { stdout } = await runCli(['simulate', '--broker', brokerUrl, ...options])
    expect(stdout).toContain('30 published, 30 acknowledged')
    ending.abort()
    await listening
    expect(messages[0]?.userProperties).toEqual({ vin: 'V2' })
    expect(new Set(messages.slice(1).map(({ topic }) => topic)).size).toBe(3)
  })
})
