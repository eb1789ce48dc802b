// fleet-cases.ts: three gateways behind three nodes of an engine: what each loss costs, the same for each engine. Nothing
// that was acknowledged to a truck may be lost, the numbers of a truck keep their order in each gateway, and a second
// effect needs two gateways.

import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startEngineFleet, type EngineFleet, type FleetOptions } from './engine-fleet.ts'
import type { Engine } from './message-engine.ts'

export type FleetEngine = {
  name: string
  isThere: boolean
  start(): Promise<Engine>
  /** What leads the partition 0. */
  leading: string
  /** Gives its queues a limit at which it does not acknowledge. */
  limited: { options: FleetOptions; limit(engine: Engine): Promise<void> }
}

const calm = { lost: 0, wrongOrder: 0, twice: 0, byTwo: 0, unknown: 0 }
/** Delivered again: what was outstanding in a partition at the time. */
const kept = { lost: 0, wrongOrder: 0, twice: 0 }

export function describeFleets({ name, isThere, start, leading, limited }: FleetEngine): void {
  async function fleetOf(options: FleetOptions = {}): Promise<{ engine: Engine; fleet: EngineFleet }> {
    const engine = await start()
    return { engine, fleet: await startEngineFleet(engine, options) }
  }

  describe.skipIf(!isThere)(`three gateways behind ${name}`, () => {
    test('share the partitions, and keep the order of each truck', async () => {
      const { fleet } = await fleetOf()
      await fleet.trucks.more(3000)
      await eventually(() => fleet.working().length > 1)
      expect(await fleet.outcome(`${name}: calm`)).toEqual(calm)
    })

    test('lose nothing when the leader is killed, again and again', async () => {
      const { engine, fleet } = await fleetOf()
      for (let round = 0; round < 3; round += 1) {
        await fleet.trucks.more(500)
        const leader = await engine.leaderOf(leading)
        await engine.kill(leader)
        await fleet.trucks.more(500)
        await engine.restart(leader)
      }
      expect(await fleet.outcome(`${name}: leader killed`)).toMatchObject(kept)
    })

    test('lose nothing when all nodes are killed at once', async () => {
      const { engine, fleet } = await fleetOf()
      for (let round = 0; round < 2; round += 1) {
        await fleet.trucks.more(1000)
        await engine.killAll()
        engine.startAll()
        await engine.ready()
      }
      await fleet.trucks.more(1000)
      expect(await fleet.outcome(`${name}: all nodes killed`)).toMatchObject(kept)
    })

    test.each(['during-write', 'after-write-before-ack'] as const)(
      'lose nothing when a gateway is killed %s',
      async (point) => {
        const { fleet } = await fleetOf({
          kills: { 0: { point, after: 20 }, 1: { point, after: 40 }, 2: { point, after: 60 } },
        })
        for (const [index, { daemon }] of fleet.gateways.entries()) {
          expect(await daemon.ended).toBe('SIGKILL')
          await fleet.trucks.more(500)
          await fleet.start(index)
        }
        await fleet.trucks.more(500)
        expect(await fleet.outcome(`${name}: gateways killed ${point}`)).toMatchObject(kept)
      },
    )

    test('lose nothing and deliver nothing twice when members stop and start by plan', async () => {
      const { fleet } = await fleetOf()
      for (const index of [0, 1, 2]) {
        await fleet.trucks.more(500)
        await fleet.stop(index)
        await fleet.trucks.more(500)
        await fleet.start(index)
      }
      expect(await fleet.outcome(`${name}: members stopped by plan`)).toEqual(calm)
    })

    test('take what waited while no gateway ran, in the order of each truck', async () => {
      const { fleet } = await fleetOf()
      await fleet.trucks.more(300)
      for (const index of [0, 1, 2]) await fleet.stop(index)
      await fleet.trucks.more(2000)
      for (const index of [0, 1, 2]) await fleet.start(index)
      expect(await fleet.outcome(`${name}: no gateway for a while`)).toEqual(calm)
    })

    test('lose nothing in an outage of the service in which their spools become full', async () => {
      // In a smaller one, what LevelDB keeps of delivered payloads holds the intake for up to ten minutes.
      const { fleet } = await fleetOf({ spoolBytes: '4MiB', trucks: { count: 40, pauseMs: 0 } })
      fleet.service.setFaults([{ always: 503 }])
      const isPaused = ({ conditions }: Status) =>
        conditions.some(({ code }) => code === 'MESSAGE_SOURCE_PAUSED')
      await eventually(async () => (await fleet.statuses()).filter(isPaused).length === 3)
      await fleet.trucks.more(1000)
      fleet.service.setFaults([])
      expect(await fleet.outcome(`${name}: full spools`)).toMatchObject(kept)
    })

    test('lose nothing when a limited queue is full: the engine does not acknowledge then', async () => {
      const { engine, fleet } = await fleetOf(limited.options)
      await limited.limit(engine)
      for (const index of [0, 1, 2]) await fleet.stop(index)
      const before = fleet.trucks.resent
      await eventually(() => fleet.trucks.resent > before + 5)
      for (const index of [0, 1, 2]) await fleet.start(index)
      await fleet.trucks.more(500)
      expect(await fleet.outcome(`${name}: full queue`)).toMatchObject(kept)
    })

    test('with custody delivered an outage of the service costs nothing, also where a disk is thrown away', async () => {
      const { fleet } = await fleetOf({ bridge: delivered })
      await fleet.trucks.more(500)
      fleet.service.setFaults([{ always: 503 }])
      const holding = async () => (await fleet.statuses()).findIndex(({ custody }) => custody?.holds === true)
      await eventually(async () => (await holding()) >= 0)
      const lost = await holding()
      await fleet.kill(lost)
      await fleet.throwDiskAway(lost)
      await fleet.trucks.more(1000)
      fleet.service.setFaults([])
      await fleet.start(lost)
      await fleet.trucks.more(500)
      const outcome = await fleet.outcome(`${name}: custody delivered, outage, a disk thrown away`)
      expect(outcome).toMatchObject(kept)
    })
  })
}

const delivered = 'custody: delivered, park_after: 2s, park_for: 20s'
