// Three daemons on one shared subscription at a real Mosquitto are killed and stopped, the broker restarts, and the
// network is cut. Nothing that the broker acknowledged to the publisher is lost. Counted at the publisher and at the
// sandbox.
//
// Mosquitto 2.0 forgets shared subscriptions when it restarts, so nothing is published until the members are back.

import { describe, expect, test } from 'vitest'
import { startFleet } from '../support/bridge-fleet.ts'
import { hasMosquitto } from '../support/mosquitto.ts'

describe.skipIf(!hasMosquitto)('three members of one shared subscription', () => {
  test('lose nothing, killed, stopped, cut off and with a broker that restarts', async () => {
    const fleet = await startFleet(['gw-a', 'gw-b', 'gw-c'], 'share_group: g, connections: 2')
    const { daemons, mosquitto, proxy, publisher, more, restart } = fleet
    await more(500)
    await daemons[0]!.kill()
    await more(500)
    await restart(0)
    await daemons[1]!.stop()
    await more(500)
    await restart(1)
    proxy.cut()
    await more(500)
    proxy.mend()
    await fleet.allConnected()
    await publisher.pause()
    await mosquitto.stop()
    await mosquitto.start()
    await fleet.allConnected()
    publisher.resume()
    await fleet.freeze()
    for (const index of [0, 1, 2]) {
      await daemons[index]!.kill()
      await restart(index)
    }
    await Promise.all(daemons.map((daemon) => daemon.kill()))
    await more(500)
    await Promise.all([0, 1, 2].map((index) => restart(index)))
    await more(500)
    expect(await fleet.outcome('three daemons')).toMatchObject({ lost: 0, notTaken: 0 })
  }, 180_000)
})
