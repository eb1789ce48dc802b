import { describe, expect, test } from 'vitest'
import { ingestOptions, ingestSchema } from '../../src/ingest/config.ts'
import { openIngest } from '../support/ingest-world.ts'
import { auto } from '../support/memory-intake-spool.ts'
import { createDevice } from '../support/mqtt-device.ts'

describe('listening', () => {
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
