import { describe, expect, test } from 'vitest'
import { turn } from '../../support/fake-clock.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { auto } from '../../support/memory-intake-spool.ts'

describe('while the spool accepts no messages', () => {
  test('at the bound sockets are not read, and every message is acknowledged later', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { heldMessagesMax: 50, inFlightMax: 65_535 })
    spool.setHold('disk_low')
    const devices = await Promise.all([1, 2, 3].map((n) => world.device(`d${n}`)))
    const each = 5000
    for (const device of devices)
      for (let id = 1; id <= each; id += 1)
        device.publish({ topic: 't', payload: `${device.clientId} ${id} ${'x'.repeat(300)}`, messageId: id })
    while (world.ingest.counters().held < 50) await turn()
    // New devices are still answered; a dozen of them take longer than reading all of this would.
    for (let n = 1; n <= 12; n += 1) await world.device(`late ${n}`)
    // One read of a socket is 64 KiB and what it had buffered; the rest waits outside.
    expect(world.ingest.counters().held).toBeLessThanOrEqual(3 * 500)
    spool.setHold(null)
    for (const device of devices) await device.acked(each)
    expect(spool.payloads).toHaveLength(3 * each)
  })
})
