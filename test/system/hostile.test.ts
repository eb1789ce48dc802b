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

const options = {
  seconds: 2,
  seed: 1,
  packets: 50_000,
  settleSeconds: 30,
  warmUpSeconds: 1.5,
  aloneSeconds: 1,
  slack: 10,
}
/** Of each kind of attack one, alternating between plain and TLS. */
const rows: readonly [name: string, tls: boolean][] = [
  ['pingreq-unread', false],
  ['subscribe-unread', true],
  ['pubrel-unread', false],
  ['qos2-stored-unread', false],
  ['slow-writers', false],
  ['dead-letters', true],
  ['sessions', false],
  ['raw', false],
  ['thief', false],
  ['passwords-of-neighbours', true],
  ['handshakes', true],
  ['ops-requests', false],
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

  test.each(rows)('%s, TLS %s: an honest client does not notice', { timeout: 120_000 }, async (name, tls) => {
    const first = await runAttack(folder, attackOf(name), { ...options, tls })
    // Two seconds are a hundred messages: on a shared machine two of them may be late by chance, but not twice.
    const row =
      first.violations.length === 0 ? first : await runAttack(folder, attackOf(name), { ...options, tls })
    expect(row.violations, JSON.stringify(row)).toEqual([])
  })

  test('50,000 packets with random faults change nothing for others', { timeout: 180_000 }, async () => {
    const row = await runAttack(folder, attackOf('fuzz'), { ...options, tls: false, seconds: 90 })
    expect(row.violations, JSON.stringify(row)).toEqual([])
    expect(row.attacker.packets).toBeGreaterThanOrEqual(options.packets)
  })

  test('each attempt ends as the table says, plain and TLS', { timeout: 180_000 }, async () => {
    await using world = await openHostileWorld(join(folder, 'attempts'), join(folder, 'compiled'))
    const reports = await runAttempts(world)
    expect(reports.length).toBeGreaterThan(60)
    expect(reports.filter((report) => !isAsExpected(report))).toEqual([])
  })
})
