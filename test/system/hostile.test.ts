// Attackers against the real daemon (test/hostile), for a short time each. Times are judged with
// wide limits, which a daemon that stands still does not meet: `npm run test:hostile` runs all attackers, longer, with
// the limits that are promised.

import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { attacks } from '../hostile/attackers/attacks.ts'
import { runAttack } from '../hostile/hostile.ts'
import { fleetUser, openHostileWorld, otherUser } from '../hostile/hostile-world.ts'
import { routeOf, transports, urlOf } from '../hostile/route.ts'
import { connectPacket3, publishPacket3, readServerPacket3 } from '../support/mqtt3-packets.ts'
import { openRawDevice } from '../support/raw-device.ts'

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

  test('what comes in one piece with a refused CONNECT is not taken, and files and log show nothing to others', async () => {
    await using world = await openHostileWorld(join(folder, 'leavings'))
    const send = async (url: string, userName: string | undefined, topic: string) => {
      const device = await openRawDevice({ url, ca: world.ca }, readServerPacket3)
      const password = { password: 'a wrong password' }
      const connect = connectPacket3({
        clientId: url,
        ...(userName !== undefined && { userName, ...password }),
      })
      const gps = { lat: 51, lon: 9 }
      device.send(
        connect,
        publishPacket3({ topic, payload: JSON.stringify({ ts: world.firstTime, gps }), messageId: 1 }),
      )
      const connack = await device.next('connack')
      // A client that is accepted has its acknowledgement: by then a message of the one before would be stored, too.
      if (connack.code === 0) await device.next('puback')
      device.destroy()
      return connack.code
    }
    const codes = []
    for (const transport of transports) {
      const url = urlOf(transport, world.port(transport))
      codes.push(await send(url, fleetUser.name, 'telemetry/v1/truck-2'))
      codes.push(await send(url, undefined, `telemetry/v1/\u001b[2J${transport}`))
    }
    expect(codes).toEqual(transports.flatMap(() => [4, 0]))
    expect((await world.status())?.totals).toMatchObject({ messages: transports.length, payloads: 0 })

    // The lines are parsed: what was escaped as JSON is a real character again.
    const texts = world.gateway.lines.flatMap(({ msg = '' }) => (/\p{Cc}/u.test(msg) ? [msg] : []))
    expect(texts).toEqual([])
    const log = JSON.stringify(world.gateway.lines)
    for (const { password } of [fleetUser, otherUser]) expect(log).not.toContain(password)
    const spool = join(world.folder, 'spool')
    const open = []
    for (const name of ['.', ...(await readdir(spool, { recursive: true }))]) {
      // LevelDB deletes files meanwhile.
      const { mode = 0 } = (await stat(join(spool, name)).catch(() => null)) ?? {}
      if ((mode & 0o077) !== 0) open.push(name)
    }
    expect(open).toEqual([])
  })
})
