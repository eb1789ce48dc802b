// Two gateways behind one node of NATS, as Debian has it: a gateway that is killed after its write and before its
// acknowledgements, a node that is killed, a gateway that is stopped by plan. `npm run test:engines` does more, with three
// nodes, and the same with RabbitMQ, whose nodes take longer to start than the rest of the test.

import { expect, test } from 'vitest'
import { natsMappings, startEngineFleet } from '../engines/engine-fleet.ts'
import { hasNats, startNats } from '../engines/nats-engine.ts'

test.skipIf(!hasNats)(
  'two gateways behind NATS lose nothing over kills of a gateway and of the node, and keep the order of each truck',
  async () => {
    const engine = await startNats({ lines: natsMappings })
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
    expect(await fleet.outcome('NATS, one node')).toMatchObject({
      lost: 0,
      wrongOrder: 0,
      twice: 0,
    })
  },
  180_000,
)
