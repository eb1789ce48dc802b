// Gateways as processes behind NATS: one is killed, one is frozen for longer than its lease and wakes up. Others
// take its partitions; nothing is lost, and nothing of theirs is acknowledged by it.

import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  natsMappings,
  partitions,
  startEngineFleet,
  type EngineFleet,
  type FleetOptions,
} from './engine-fleet.ts'
import { hasNats, startNats } from './nats-engine.ts'

async function startFleet(options: FleetOptions): Promise<EngineFleet> {
  return startEngineFleet(await startNats({ lines: natsMappings }), options)
}

async function activeAt(fleet: EngineFleet, gateway: number): Promise<number> {
  const status = await fleet.gateways[gateway]!.daemon.status()
  const source = status?.messageSources.find(({ name }) => name === 'engine')
  return source?.partitions.filter(({ role }) => role === 'active').length ?? 0
}

async function outstandingAt(fleet: EngineFleet, gateway: number): Promise<number> {
  const status = await fleet.gateways[gateway]!.daemon.status()
  return status?.messageSources.reduce((sum, { outstanding }) => sum + outstanding, 0) ?? 0
}

const isShared = async (fleet: EngineFleet) =>
  (await activeAt(fleet, 0)) === partitions / 2 && (await activeAt(fleet, 1)) === partitions / 2

describe.skipIf(!hasNats)('gateways behind NATS', () => {
  test('one is killed: the other takes its partitions after the lease of 6 s', async () => {
    const fleet = await startFleet({ gateways: 2 })
    await eventually(() => isShared(fleet))
    const times: number[] = []
    for (const gateway of [0, 1]) {
      await fleet.trucks.more(300)
      const killedMs = performance.now()
      await fleet.kill(gateway)
      await eventually(async () => (await activeAt(fleet, 1 - gateway)) === partitions)
      times.push(Math.round(performance.now() - killedMs))
      await fleet.trucks.more(300)
      await fleet.start(gateway)
      await eventually(() => isShared(fleet))
    }
    expect(await fleet.outcome('NATS: gateways killed')).toMatchObject({
      lost: 0,
      wrongOrder: 0,
      twice: 0,
    })
    process.stderr.write(`engines: NATS: partitions taken over ${times.join(' and ')} ms after a kill\n`)
    // Six seconds, a look each second, and a busy machine.
    for (const ms of times) expect(ms).toBeLessThan(20_000)
  })

  test('one is frozen beyond its lease and wakes up: it acknowledges nothing that the other one had', async () => {
    const fleet = await startFleet({ gateways: 2, bridge: 'custody: delivered, park_after: 1h' })
    const frozen = fleet.gateways[0]!.daemon
    await eventually(() => isShared(fleet))
    // Nothing is acknowledged: the service accepts nothing.
    fleet.service.setFaults([{ always: 503 }])
    await fleet.trucks.more(400)
    await eventually(async () => (await outstandingAt(fleet, 0)) > 50)
    process.kill(frozen.pid, 'SIGSTOP')
    await eventually(async () => (await activeAt(fleet, 1)) === partitions)
    await fleet.trucks.more(400)
    await fleet.trucks.hold()
    // It has what the frozen one had taken, and what came since; and is lost with all of it.
    await eventually(async () => (await outstandingAt(fleet, 1)) >= 800)
    await fleet.kill(1)
    await fleet.throwDiskAway(1)
    fleet.service.setFaults([])
    process.kill(frozen.pid, 'SIGCONT')
    await eventually(async () => (await activeAt(fleet, 0)) === partitions)
    await fleet.start(1)
    fleet.trucks.grant(Infinity)
    await fleet.trucks.more(200)
    expect(await fleet.outcome('NATS: a gateway frozen, the other lost with its disk')).toMatchObject({
      lost: 0,
      wrongOrder: 0,
    })
  })
})
