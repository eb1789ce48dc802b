// Attackers against the real daemon (test/hostile), for a short time each, and all attempts. Times are judged with
// wide limits, which a daemon that stands still does not meet: `npm run test:hostile` runs all attackers, longer, with
// the limits that are promised.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { attacks } from '../hostile/attackers/attacks.ts'
import { isAsExpected, runAttempts } from '../hostile/attempts/attempts.ts'
import { runAttack } from '../hostile/hostile.ts'
import { openHostileWorld } from '../hostile/hostile-world.ts'
import { routeOf } from '../hostile/route.ts'

const options = {
  seconds: 2,
  seed: 1,
  packets: 50_000,
  settleSeconds: 30,
  warmUpSeconds: 1.5,
  aloneSeconds: 1,
  slack: 10,
}
/** Some of the attacks, with each transport and both versions. */
const rows: readonly [name: string, route: string][] = [
  ['subscribe-unread', 'tls/5'],
  ['qos2-stored-unread', 'tcp/5'],
  ['slow-writers', 'ws/4'],
  ['dead-letters', 'tls/4'],
  ['passwords-of-neighbours', 'wss/4'],
  ['ops-requests', 'tcp/4'],
]

describe('strangers at the real daemon', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gateway-hostile-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const attackOf = (name: string) => {
    const attack = attacks.find((one) => one.name === name)
    if (attack === undefined) throw new Error(`there is no attack ${name}`)
    return attack
  }

  test.each(rows)('%s, %s: honest clients do not notice', { timeout: 120_000 }, async (name, text) => {
    const route = routeOf(text)
    const first = await runAttack(folder, attackOf(name), { ...options, ...route })
    // Two seconds are a hundred messages: on a shared machine two of them may be late by chance, but not twice.
    const row =
      first.violations.length === 0
        ? first
        : await runAttack(folder, attackOf(name), { ...options, ...route })
    expect(row.violations, JSON.stringify(row)).toEqual([])
  })

  test('50,000 packets with random faults change nothing for others', { timeout: 180_000 }, async () => {
    const row = await runAttack(folder, attackOf('fuzz'), { ...options, ...routeOf('ws/5'), seconds: 90 })
    expect(row.violations, JSON.stringify(row)).toEqual([])
    expect(row.attacker.packets).toBeGreaterThanOrEqual(options.packets)
  })

  test('each attempt ends as the table says', { timeout: 180_000 }, async () => {
    await using world = await openHostileWorld(join(folder, 'attempts'))
    const reports = await runAttempts(world, ['wss'])
    expect(reports.length).toBeGreaterThan(25)
    expect(reports.filter((report) => !isAsExpected(report))).toEqual([])
  })
})
