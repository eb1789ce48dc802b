// Gateways as processes behind RabbitMQ: one is frozen for longer than RabbitMQ waits for its heartbeats, and wakes up.
// RabbitMQ has given its messages to the other one; those in its sockets must not be stored again.

import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startEngineFleet } from './engine-fleet.ts'
import { hasRabbit, startRabbit } from './rabbit-engine.ts'

const frozenMs = 45_000

describe.skipIf(!hasRabbit)('gateways behind RabbitMQ', () => {
  test('one is frozen for 45 s and wakes up: what it had not stored comes once', async () => {
    const fleet = await startEngineFleet(await startRabbit(), { gateways: 2 })
    await fleet.trucks.more(500)
    const frozen = fleet.gateways[0]!.daemon
    process.kill(frozen.pid, 'SIGSTOP')
    const { acked } = fleet.trucks
    await new Promise((resolve) => setTimeout(resolve, frozenMs))
    expect(fleet.trucks.acked).toBeGreaterThan(acked + 500)
    process.kill(frozen.pid, 'SIGCONT')
    await eventually(() => frozen.log().includes('stood still'))
    await fleet.trucks.more(500)
    const outcome = await fleet.outcome('RabbitMQ: a gateway frozen for 45 s')
    expect(outcome).toMatchObject({ lost: 0, wrongOrder: 0 })
    // What it had taken and not yet acknowledged: one commit at most.
    expect(outcome.byTwo).toBeLessThan(20)
  })
})
