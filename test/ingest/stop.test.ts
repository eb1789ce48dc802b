import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ingestOptions, ingestSchema } from '../../src/ingest/config.ts'
import { openIngest } from '../support/ingest-world.ts'
import { auto } from '../support/memory-intake-spool.ts'
import { createDevice } from '../support/mqtt-device.ts'

describe('listening', () => {
  test('a port in use fails the start with ADDRESS_IN_USE', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const spool = auto()
    const listeners = [
      { host: '127.0.0.1', port: 0, tls: null },
      { host: '127.0.0.1', port, tls: null },
    ]
    await expect(openIngest(spool, { listeners })).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    other.close()
  })

  test('an address that is not of this machine fails the start with ADDRESS_UNAVAILABLE', async () => {
    const listeners = [{ host: '192.0.2.1', port: 0, tls: null }]
    const spool = auto()
    await expect(openIngest(spool, { listeners })).rejects.toMatchObject({ code: 'ADDRESS_UNAVAILABLE' })
  })

  test('several listeners are opened and reported with the ports that the system chose', async () => {
    const url = 'mqtt://127.0.0.1:0'
    const { listeners, access } = ingestOptions(
      ingestSchema.parse({ broker: { listeners: [{ url }, { url }], access: { anonymous: true } } }),
    )
    await using world = await openIngest(auto(), { listeners, access })
    const urls = world.ingest.addresses()
    expect(world.events).toEqual(urls.map((url) => ({ kind: 'listener_opened', url })))
    for (const url of urls) {
      const device = await createDevice({ port: Number(new URL(url).port), clientId: url })
      expect(await device.connect()).toMatchObject({ returnCode: 0 })
      device.destroy()
    }
  })
})
