// bridge-fleet.ts: several daemons with a bridge to one Mosquitto, a publisher, and the service; what was lost and what
// was delivered twice, counted at the publisher and at the service.

import { isConnected, lossesOf, startPublisher, statusOf, writeBridgeConfig } from './bridge-daemons.ts'
import { startCutProxy } from './cut-proxy.ts'
import { eventually } from './eventually.ts'
import { startMosquitto } from './mosquitto.ts'
import { startSandbox } from './pipeline-world.ts'
import { startSpawnedDaemon } from './spawned-daemon.ts'

/** Daemons with the bridge `depot`, each with its own spool, behind a network that can be cut. */
export async function startFleet(clientIds: readonly string[], bridge: string) {
  const { sandbox, url: serviceUrl } = await startSandbox({})
  const mosquitto = await startMosquitto()
  const proxy = await startCutProxy(mosquitto.port)
  const configs = await Promise.all(
    clientIds.map((clientId) => writeBridgeConfig({ clientId, brokerPort: proxy.port, serviceUrl, bridge })),
  )
  const daemons = await Promise.all(configs.map((config) => startSpawnedDaemon(config)))
  const allConnected = async () => {
    for (const daemon of daemons) await eventually(() => isConnected(daemon))
  }
  await allConnected()
  const publisher = await startPublisher(mosquitto.port, 10)
  return {
    mosquitto,
    proxy,
    daemons,
    publisher,
    allConnected,
    async more(count: number) {
      const from = publisher.acked
      await eventually(() => publisher.acked >= from + count)
    },
    async restart(index: number) {
      daemons[index] = await startSpawnedDaemon(configs[index]!)
      await eventually(() => isConnected(daemons[index]!))
    },
    /** The link carries nothing and says nothing; the daemons find out. */
    async freeze() {
      const losses = await Promise.all(daemons.map((daemon) => lossesOf(daemon)))
      proxy.freeze()
      for (const [index, daemon] of daemons.entries())
        await eventually(async () => (await lossesOf(daemon)) > losses[index]!)
      await allConnected()
    },
    /** Waits until everything that was acknowledged to the publisher has arrived, and says how often. */
    async outcome(name: string) {
      await publisher.stop()
      await eventually(() => sandbox.stats().distinctPayloadIds >= publisher.acked)
      const statuses = await Promise.all(daemons.map((daemon) => statusOf(daemon)))
      const notTaken = statuses.reduce((sum, { totals }) => sum + totals.unmappable + totals.dropped, 0)
      const { distinctPayloadIds, duplicatesAcrossBatches: twice } = sandbox.stats()
      process.stderr.write(
        `bridges: ${name}: ${publisher.acked} published, ${distinctPayloadIds} payloadIds, ${twice} second effects\n`,
      )
      return { lost: publisher.acked - distinctPayloadIds, notTaken, twice }
    },
  }
}
