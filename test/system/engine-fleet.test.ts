// Two gateways behind one node of NATS or RabbitMQ, as Debian has them: a gateway that is killed after its write and before
// its acknowledgements, a node that is killed, a gateway that is stopped by plan. `npm run test:engines` does more, with
// three nodes.

import { describe, expect, test } from 'vitest'
import { natsMappings, startEngineFleet } from '../engines/engine-fleet.ts'
import { hasNats, startNats } from '../engines/nats-engine.ts'
import { hasRabbit, startRabbit } from '../engines/rabbit-engine.ts'

describe.each([
  { name: 'NATS', isThere: hasNats, start: () => startNats({ lines: natsMappings }) },
  { name: 'RabbitMQ', isThere: hasRabbit, start: () => startRabbit() },
])('two gateways behind $name', ({ name, isThere, start }) => {
  test.skipIf(!isThere)(
    'lose nothing over kills of a gateway and of the node, and keep the order of each truck',
    async () => {
      const engine = await start()
      const fleet = await startEngineFleet(engine, {
        gateways: 2,
        trucks: { count: 10, pauseMs: 50 },
        kills: { 0: { point: 'after-write-before-ack', after: 5 } },
      })
      expect(await fleet.gateways[0]!.daemon.ended).toBe('SIGKILL')
      await fleet.trucks.more(100)
      await fleet.start(0)
      await fleet.trucks.more(100)
      await engine.kill(0)
      await engine.restart(0)
      await fleet.trucks.more(100)
      await fleet.stop(1)
      await fleet.trucks.more(100)
      await fleet.start(1)
      expect(await fleet.outcome(`${name}, one node`)).toMatchObject({
        lost: 0,
        wrongOrder: 0,
        twiceByOne: 0,
      })
    },
    180_000,
  )
})
